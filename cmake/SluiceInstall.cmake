# What users of the libraries get: shared libraries, headers, pkg-config files, a CMake package.
#
# Headers in this tree include each other by their path in it ("src/call/call.h"); users see one folder,
# <sluice/call.h>. The converted headers are in build/include, where this tree's examples read them, too.

set(SLUICE_PUBLIC_INCLUDE "${CMAKE_BINARY_DIR}/include")

function(sluice_public_headers)
    foreach(header ${ARGN})
        set(source "${CMAKE_SOURCE_DIR}/${header}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
        file(READ "${source}" text)
        string(REGEX REPLACE "#include \"(base|src|filters)/([a-z_]+/)?([a-z_]+\\.h)\"" "#include <sluice/\\3>"
            text "${text}")
        get_filename_component(name "${header}" NAME)
        file(GENERATE OUTPUT "${SLUICE_PUBLIC_INCLUDE}/sluice/${name}" CONTENT "${text}")
        install(FILES "${SLUICE_PUBLIC_INCLUDE}/sluice/${name}"
            DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sluice")
    endforeach()
endfunction()

# A shared library of the same objects as the static one; what is not SL_EXPORT stays hidden.
function(sluice_shared_library target name objects)
    add_library(${target} SHARED "$<TARGET_OBJECTS:${objects}>")
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name}
        EXPORT_NAME ${name}
        VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR})
    target_link_libraries(${target} PRIVATE sluice::base ${ARGN})
    target_include_directories(${target} INTERFACE
        "$<BUILD_INTERFACE:${SLUICE_PUBLIC_INCLUDE}>" "$<INSTALL_INTERFACE:include>")
    install(TARGETS ${target} EXPORT sluice LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    # Relative, so that `cmake --install --prefix` may put it anywhere.
    file(RELATIVE_PATH prefix_from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    configure_file("${CMAKE_SOURCE_DIR}/cmake/${name}.pc.in" "${CMAKE_BINARY_DIR}/${name}.pc" @ONLY)
    install(FILES "${CMAKE_BINARY_DIR}/${name}.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

sluice_public_headers(
    base/export.h
    base/failure.h
    base/slice.h)
sluice_public_headers(
    src/archive/archive.h
    src/archive/archived.h
    src/call/call.h
    src/call/read.h
    src/call/reply.h
    src/call/shard_calls.h
    src/call/write.h
    src/database/event_log.h
    src/database/meta.h
    src/database/settings.h
    src/home/home_read.h
    src/home/home_sets.h
    src/model/audience.h
    src/model/data_dir.h
    src/model/database.h
    src/model/id.h
    src/model/keys.h
    src/model/login.h
    src/redis/cluster_map.h
    src/redis/redis_address.h
    src/redis/redis_link.h
    src/redis/sentinel.h
    src/social/common_users.h
    src/social/follows.h
    src/social/included.h
    src/social/likes.h
    src/social/post_rows.h
    src/social/posts.h
    src/social/privacy.h
    src/social/public_timeline.h
    src/social/user_list.h
    src/social/users.h
    src/tasks/tasks.h
    src/tasks/worker.h)
sluice_public_headers(
    filters/event_view.h
    filters/filter.h
    filters/filter_index.h
    filters/match_set.h
    filters/words.h)

sluice_shared_library(libsluice sluice sluice_core_objects
    PkgConfig::HIREDIS PkgConfig::ICU PkgConfig::JANSSON PkgConfig::MARIADB PkgConfig::OPENSSL
    PkgConfig::SQLITE)
sluice_shared_library(libsluicefilter sluicefilter sluice_filters PkgConfig::ICU m)

include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")
install(EXPORT sluice FILE sluiceTargets.cmake NAMESPACE sluice:: DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_SOURCE_DIR}/cmake/sluiceConfig.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake" DESTINATION "${package}")
