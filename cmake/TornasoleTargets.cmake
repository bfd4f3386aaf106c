# tornasole_folder(NAME SOURCES ... LINKS ... PRIVATE_LINKS ...): one static library per folder of src/. LINKS are the
# folders it may include, exactly the row of tests/layering_test.py.
function(tornasole_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS;PRIVATE_LINKS")
  add_library(tornasole_${name} STATIC ${arg_SOURCES})
  target_include_directories(tornasole_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  set(folders ${arg_LINKS})
  list(TRANSFORM folders PREPEND tornasole_)
  target_link_libraries(tornasole_${name} PUBLIC ${folders} tornasole::dep_fmt
    PRIVATE $<BUILD_INTERFACE:tornasole_flags> ${arg_PRIVATE_LINKS})
endfunction()

# tornasole_test(NAME SOURCES ... LINKS ...): one gtest program, one ctest entry (label "unit" unless LABELS says else).
function(tornasole_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LINKS;PRIVATE_LINKS;LABELS")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  set(folders ${arg_LINKS})
  list(TRANSFORM folders PREPEND tornasole_)
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${folders} tornasole_flags ${arg_PRIVATE_LINKS} GTest::gtest GTest::gmock GTest::gtest_main
    tornasole::dep_fmt)
  add_test(NAME ${name} COMMAND ${name})
  # A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT TORNASOLE_CLOSE_WAIT_S=120)
endfunction()

# tornasole_fuzz(NAME SOURCE ... LINKS ...): one libFuzzer program; its corpus is tests/fuzz/corpus/NAME.
function(tornasole_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS;PRIVATE_LINKS")
  set(folders ${arg_LINKS})
  list(TRANSFORM folders PREPEND tornasole_)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${folders} tornasole_flags ${arg_PRIVATE_LINKS} tornasole::dep_fmt)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
