# Run by cmake -P: -DOUTPUT=FILE.c -DINPUT=FILE -DNAME=NAME
#
# Writes a C file that defines NAME, the bytes of INPUT, and NAME_size, their number.
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1', " bytes "${hex}")
get_filename_component(input "${INPUT}" NAME)
file(WRITE "${OUTPUT}" "/* Made from ${input} by cmake/EmbedText.cmake. */\n#include <stddef.h>\n\n"
    "extern const char ${NAME}[];\nextern const size_t ${NAME}_size;\n\n"
    "const char ${NAME}[] = {\n    ${bytes}};\nconst size_t ${NAME}_size = sizeof(${NAME});\n")
