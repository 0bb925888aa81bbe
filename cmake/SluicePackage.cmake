# What is installed in addition to the programs on a machine that runs sluiced: the unit, its settings, rules and
# dashboard for Prometheus and Grafana, configurations of proxies. `cpack` in a build folder makes
# sluice_VERSION_ARCH.deb of all of it.

install(FILES
    "${CMAKE_SOURCE_DIR}/packaging/prometheus/prometheus.yml"
    "${CMAKE_SOURCE_DIR}/packaging/prometheus/sluice-rules.yml"
    "${CMAKE_SOURCE_DIR}/packaging/grafana/sluice.json"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice")
install(DIRECTORY "${CMAKE_SOURCE_DIR}/packaging/proxies" DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice")

# The prefix is only known at installation: /etc belongs to /usr, as usual, and PREFIX/etc to any other prefix.
install(CODE "set(source \"${CMAKE_SOURCE_DIR}/packaging\")
set(sbin \"${CMAKE_INSTALL_SBINDIR}\")")
install(CODE [[
set(SLUICE_SBIN "${CMAKE_INSTALL_PREFIX}/${sbin}")
set(SLUICE_ETC "${CMAKE_INSTALL_PREFIX}/etc/sluice")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(SLUICE_ETC "/etc/sluice")
endif()
message(STATUS "Installing: $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/sluiced.service")
configure_file("${source}/sluiced.service.in"
    "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/sluiced.service" @ONLY)
if(EXISTS "$ENV{DESTDIR}${SLUICE_ETC}/sluiced.conf")
    message(STATUS "Left alone: $ENV{DESTDIR}${SLUICE_ETC}/sluiced.conf")
else()
    message(STATUS "Installing: $ENV{DESTDIR}${SLUICE_ETC}/sluiced.conf")
    configure_file("${source}/sluiced.conf" "$ENV{DESTDIR}${SLUICE_ETC}/sluiced.conf" COPYONLY)
endif()
]])

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_VENDOR Sluice)
set(CPACK_PACKAGE_CONTACT "The authors of Sluice <sluice@localhost>")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
# dpkg-shlibdeps finds what the programs link; the libuv plugin of libwebsockets is loaded at run time, so it is named.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS libwebsockets-evlib-uv)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS redis-server)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS memcached)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian "${CMAKE_SOURCE_DIR}/packaging/debian")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${debian}/conffiles" "${debian}/postinst" "${debian}/prerm" "${debian}/postrm")
include(CPack)
