# Packages from npm, if Node is found: SLUICE_NODE, SLUICE_NPM, SLUICE_HAS_NODE.

find_program(SLUICE_NODE NAMES node nodejs)
find_program(SLUICE_NPM NAMES npm)
set(SLUICE_HAS_NODE OFF)
if(SLUICE_NODE AND SLUICE_NPM)
    execute_process(COMMAND "${SLUICE_NODE}" --version
        OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REGEX REPLACE "^v" "" node_version "${node_version}")
    if(node_version VERSION_GREATER_EQUAL 18)
        set(SLUICE_HAS_NODE ON)
    endif()
endif()

# At build time, installs what `folder`/package-lock.json pins into node_modules of the current binary folder; again
# only when the lock file changes. *ret_stamp is the file to depend on.
function(sluice_npm_ci folder ret_stamp)
    set(script "${PROJECT_SOURCE_DIR}/cmake/NpmCi.cmake")
    set(stamp "${CMAKE_CURRENT_BINARY_DIR}/node_modules/.package-lock.json")
    add_custom_command(OUTPUT "${stamp}"
        COMMAND ${CMAKE_COMMAND} "-DNPM=${SLUICE_NPM}" "-DFROM=${folder}" -P "${script}"
        COMMAND ${CMAKE_COMMAND} -E touch "${stamp}"
        DEPENDS "${folder}/package.json" "${folder}/package-lock.json" "${folder}/.npmrc" "${script}"
        WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
        COMMENT "Fetching the npm packages of ${folder}"
        VERBATIM)
    set(${ret_stamp} "${stamp}" PARENT_SCOPE)
endfunction()
