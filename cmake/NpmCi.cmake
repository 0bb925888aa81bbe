# Run by cmake -P in the folder that shall get node_modules: -DNPM=PROGRAM -DFROM=FOLDER
#
# Installs what FOLDER/package-lock.json pins, without running any script of a package. npm takes packages from its
# cache if it can.
file(COPY "${FROM}/package.json" "${FROM}/package-lock.json" "${FROM}/.npmrc" DESTINATION .)
execute_process(
    COMMAND "${NPM}" ci --ignore-scripts --prefer-offline --no-audit --no-fund --no-update-notifier
        --loglevel=error
    OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE result)
if(result)
    message(FATAL_ERROR "npm cannot fetch the packages of ${FROM}:\n${said}\n"
        "Without a way to the npm registry, configure with -DSLUICE_DASHBOARD=OFF, or put the "
        "bundle of a release into web/dist.")
endif()
