# tornasole::libtorch: libtornasole, the headers of its adapter, and libtorch. Which libtorch:
#
# 1. the one of find_package(Torch), if the project called that before;
# 2. TORNASOLE_LIBTORCH_DIR: the folder torch of an installed PyTorch, or an unpacked libtorch. It has to use the C++11
#    ABI, as PyTorch's wheels do from 2.6 on;
# 3. that of the system, as Debian's libtorch-dev.
set(tornasole_libtorch_FOUND FALSE)
if(TARGET torch)
  set(tornasole_libtorch_LIBRARIES torch)
  set(tornasole_libtorch_FOUND TRUE)
else()
  set(tornasole_where "")
  if(TORNASOLE_LIBTORCH_DIR)
    set(tornasole_where PATHS "${TORNASOLE_LIBTORCH_DIR}" PATH_SUFFIXES include lib NO_DEFAULT_PATH)
  endif()
  find_path(TORNASOLE_LIBTORCH_INCLUDE torch/csrc/api/include/torch/torch.h ${tornasole_where})
  set(tornasole_libtorch_LIBRARIES "")
  foreach(library torch_cpu c10)
    find_library(TORNASOLE_LIBTORCH_${library} ${library} ${tornasole_where})
    mark_as_advanced(TORNASOLE_LIBTORCH_${library})
    list(APPEND tornasole_libtorch_LIBRARIES "${TORNASOLE_LIBTORCH_${library}}")
  endforeach()
  mark_as_advanced(TORNASOLE_LIBTORCH_INCLUDE)
  if(TORNASOLE_LIBTORCH_INCLUDE AND TORNASOLE_LIBTORCH_torch_cpu AND TORNASOLE_LIBTORCH_c10)
    set(tornasole_libtorch_FOUND TRUE)
  else()
    set(tornasole_NOT_FOUND_MESSAGE "libtorch was not found; install libtorch-dev, call find_package(Torch) before, or
set TORNASOLE_LIBTORCH_DIR to the folder torch of an installed PyTorch")
  endif()
endif()

if(tornasole_libtorch_FOUND AND NOT TARGET tornasole::libtorch)
  find_package(Threads REQUIRED)
  add_library(tornasole::libtorch INTERFACE IMPORTED)
  target_link_libraries(tornasole::libtorch INTERFACE tornasole::tornasole ${tornasole_libtorch_LIBRARIES}
    Threads::Threads)
  if(NOT TARGET torch)
    target_include_directories(tornasole::libtorch SYSTEM INTERFACE "${TORNASOLE_LIBTORCH_INCLUDE}"
      "${TORNASOLE_LIBTORCH_INCLUDE}/torch/csrc/api/include")
  endif()
endif()
