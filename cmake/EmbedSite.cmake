# Run by cmake -P: -DOUTPUT=FILE.c -DBUNDLE=FOLDER
#
# Writes a C file that defines `dashboard_site`: the files listed in FOLDER/manifest.txt, each uncompressed and as its
# .gz. A line of the manifest: path, name of the file, page or asset, all or operators, separated by tabs. Without a
# folder the site is empty.
set(c "/* Made from web/ by cmake/EmbedSite.cmake. */\n#include \"gateway/front/site.h\"\n")
set(rows "")
set(count 0)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_json "application/json")
set(type_yaml "application/yaml")
set(type_svg "image/svg+xml")
set(type_txt "text/plain; charset=utf-8")

function(append_bytes name file)
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    set(c "${c}\nstatic const unsigned char ${name}[] = {\n    ${bytes}};\n" PARENT_SCOPE)
endfunction()

if(BUNDLE)
    file(STRINGS "${BUNDLE}/manifest.txt" manifest)
endif()
foreach(line IN LISTS manifest)
    string(REPLACE "\t" ";" line "${line}")
    list(GET line 0 path)
    list(GET line 1 name)
    list(GET line 2 kind)
    list(GET line 3 audience)
    set(is_document false)
    if(kind STREQUAL "page")
        set(is_document true)
    endif()
    set(is_for_all false)
    if(audience STREQUAL "all")
        set(is_for_all true)
    endif()
    string(REGEX REPLACE ".*\\." "" ending "${name}")
    if(NOT DEFINED type_${ending})
        message(FATAL_ERROR "${name}: of which content type?")
    endif()
    append_bytes(plain_${count} "${BUNDLE}/${name}")
    append_bytes(gzip_${count} "${BUNDLE}/${name}.gz")
    file(SHA256 "${BUNDLE}/${name}" hash)
    string(SUBSTRING "${hash}" 0 32 hash)
    string(APPEND rows
        "    {\"${path}\", \"${type_${ending}}\", \"${hash}\", ${is_document}, ${is_for_all},\n"
        "     (const char *)plain_${count}, sizeof(plain_${count}),\n"
        "     (const char *)gzip_${count}, sizeof(gzip_${count})},\n")
    math(EXPR count "${count} + 1")
endforeach()

if(count GREATER 0)
    string(APPEND c "\nstatic const struct site_file files[] = {\n${rows}};\n"
        "\nconst struct site dashboard_site = {files, ${count}};\n")
else()
    string(APPEND c "\nconst struct site dashboard_site = {NULL, 0};\n")
endif()
file(WRITE "${OUTPUT}" "${c}")
