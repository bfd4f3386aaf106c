# tornasole::xgboost: libtornasole, the headers of its adapter, and XGBoost: of the system, as Debian's libxgboost-dev,
# or where TORNASOLE_XGBOOST_INCLUDE (the folder with xgboost/c_api.h) and TORNASOLE_XGBOOST_LIBRARY say. A library of
# another version than the header's will do: of the C interface only what has been there since 1.7 is used.
find_path(TORNASOLE_XGBOOST_INCLUDE xgboost/c_api.h)
find_library(TORNASOLE_XGBOOST_LIBRARY xgboost)
mark_as_advanced(TORNASOLE_XGBOOST_INCLUDE TORNASOLE_XGBOOST_LIBRARY)
set(tornasole_xgboost_FOUND FALSE)
if(TORNASOLE_XGBOOST_INCLUDE AND TORNASOLE_XGBOOST_LIBRARY)
  set(tornasole_xgboost_FOUND TRUE)
  if(NOT TARGET tornasole::xgboost)
    add_library(tornasole::xgboost INTERFACE IMPORTED)
    target_link_libraries(tornasole::xgboost INTERFACE tornasole::tornasole "${TORNASOLE_XGBOOST_LIBRARY}")
    target_include_directories(tornasole::xgboost SYSTEM INTERFACE "${TORNASOLE_XGBOOST_INCLUDE}")
  endif()
else()
  set(tornasole_NOT_FOUND_MESSAGE "XGBoost was not found; install libxgboost-dev, or set TORNASOLE_XGBOOST_INCLUDE and
TORNASOLE_XGBOOST_LIBRARY")
endif()
