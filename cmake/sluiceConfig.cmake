include("${CMAKE_CURRENT_LIST_DIR}/sluiceTargets.cmake")
