# Links every entry of the package FROM into TO, and the command line CLI into TO/bin.
file(MAKE_DIRECTORY "${TO}/bin")
file(GLOB entries RELATIVE "${FROM}" "${FROM}/*")
foreach(entry ${entries})
  if(NOT entry STREQUAL "__pycache__")
    file(CREATE_LINK "${FROM}/${entry}" "${TO}/${entry}" SYMBOLIC)
  endif()
endforeach()
file(CREATE_LINK "${CLI}" "${TO}/bin/tornasole" SYMBOLIC)
