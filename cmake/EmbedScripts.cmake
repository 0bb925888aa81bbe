# Run by cmake -P: -DOUTPUT=FILE.c -DPRELUDE=FILE.lua -DSCRIPTS=A.lua,B.lua
#
# Writes a C file that defines `sl_script_A`, ... : the prelude and the script as one text, and the
# SHA1 by which EVALSHA calls it.
string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
file(READ "${PRELUDE}" prelude)
set(c "/* Made from src/scripts by cmake/EmbedScripts.cmake. */\n#include \"src/scripts.h\"\n")

foreach(script IN LISTS SCRIPTS)
    get_filename_component(name "${script}" NAME_WE)
    file(READ "${script}" body)
    set(source "${prelude}\n${body}")
    string(SHA1 sha1 "${source}")
    string(LENGTH "${source}" size)
    string(HEX "${source}" hex)
    string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND c "\nstatic const char ${name}_source[] = {\n    ${bytes}};\n"
        "const struct sl_script sl_script_${name} = {\"${name}\", \"${sha1}\", ${name}_source, ${size}};\n")
endforeach()

file(WRITE "${OUTPUT}" "${c}")
