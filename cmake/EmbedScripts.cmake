# Run by cmake -P: -DOUTPUT=FILE.c -DPRELUDES=A.lua,B.lua -DSETTINGS=FILE.def -DSCRIPTS=A.lua,B.lua
#
# Writes a C file that defines `sl_script_A`, ... : the table of settings, the preludes and the script as
# one text, and the SHA1 by which EVALSHA calls it.
string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
string(REPLACE "," ";" PRELUDES "${PRELUDES}")
set(prelude "")
foreach(file IN LISTS PRELUDES)
    file(READ "${file}" text)
    string(APPEND prelude "${text}\n")
endforeach()
file(STRINGS "${SETTINGS}" rows REGEX "^SETTING\\(")
set(table "")
foreach(row IN LISTS rows)
    if(NOT row MATCHES "^SETTING\\(([a-z0-9_]+), \"[a-z0-9-]+\", [A-Z]+, ([0-9]+), ([0-9]+), ([0-9]+),")
        message(FATAL_ERROR "${SETTINGS}: the scripts cannot read this row: ${row}")
    endif()
    string(APPEND table
        " ${CMAKE_MATCH_1} = {${CMAKE_MATCH_2}, ${CMAKE_MATCH_3}, ${CMAKE_MATCH_4}},")
endforeach()
set(prelude "local SETTINGS = {${table} }\n${prelude}")
set(c "/* Made from src/scripts by cmake/EmbedScripts.cmake. */\n#include \"src/call/scripts.h\"\n")

foreach(script IN LISTS SCRIPTS)
    get_filename_component(name "${script}" NAME_WE)
    file(READ "${script}" body)
    set(source "${prelude}${body}")
    string(SHA1 sha1 "${source}")
    string(LENGTH "${source}" size)
    string(HEX "${source}" hex)
    string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND c "\nstatic const char ${name}_source[] = {\n    ${bytes}};\n"
        "const struct sl_script sl_script_${name} = {\"${name}\", \"${sha1}\", ${name}_source, ${size}};\n")
endforeach()

file(WRITE "${OUTPUT}" "${c}")
