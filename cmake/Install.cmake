# cmake --install and cpack: the program, and its integration into the desktop and the shell.
include(GNUInstallDirs)
if(SKBUILD)
  # A wheel: the program inside the package, with the files it looks for next to itself.
  install(TARGETS attnscope RUNTIME DESTINATION attnscope/bin COMPONENT python)
  install(DIRECTORY assets/examples DESTINATION attnscope/share/attnscope COMPONENT python)
  return()
endif()
install(TARGETS attnscope RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES assets/attnscope.desktop DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")
install(FILES assets/attnscope.svg DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps")
install(FILES assets/attnscope.mime.xml DESTINATION "${CMAKE_INSTALL_DATADIR}/mime/packages" RENAME attnscope.xml)
install(FILES assets/attnscope.metainfo.xml DESTINATION "${CMAKE_INSTALL_DATADIR}/metainfo")
install(DIRECTORY assets/examples DESTINATION "${CMAKE_INSTALL_DATADIR}/attnscope")
install(FILES README.md SECURITY.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN "*.gif" EXCLUDE)

# The program writes the manual page and the completions from the table of its --help. gzip -n omits the time.
# Debian's tools need their own form of changelog in addition to ours.
set(documents "${PROJECT_BINARY_DIR}/documents")
# The maintainer is set as for Debian's own tools.
set(maintainer "attnscope's maintainers <attnscope@localhost>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
file(MAKE_DIRECTORY "${documents}")
add_custom_command(
  OUTPUT "${documents}/attnscope.1.gz" "${documents}/attnscope.bash" "${documents}/_attnscope" "${documents}/attnscope.fish"
         "${documents}/CHANGELOG.md.gz" "${documents}/changelog.gz"
  COMMAND attnscope manual man > "${documents}/attnscope.1"
  COMMAND gzip -9nf "${documents}/attnscope.1"
  COMMAND attnscope manual bash > "${documents}/attnscope.bash"
  COMMAND attnscope manual zsh > "${documents}/_attnscope"
  COMMAND attnscope manual fish > "${documents}/attnscope.fish"
  COMMAND gzip -9nc "${PROJECT_SOURCE_DIR}/CHANGELOG.md" > "${documents}/CHANGELOG.md.gz"
  COMMAND ${CMAKE_COMMAND} "-DVERSION=${PROJECT_VERSION}" "-DMAINTAINER=${maintainer}" "-DOUTPUT=${documents}/changelog"
          -P "${CMAKE_CURRENT_LIST_DIR}/DebianChangelog.cmake"
  COMMAND gzip -9nf "${documents}/changelog"
  DEPENDS attnscope CHANGELOG.md WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" COMMENT "Writing manual and completions" VERBATIM)
add_custom_target(attnscope_documents ALL DEPENDS "${documents}/attnscope.1.gz")
install(FILES "${documents}/attnscope.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${documents}/attnscope.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME attnscope)
install(FILES "${documents}/_attnscope" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions")
install(FILES "${documents}/attnscope.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
install(FILES "${documents}/CHANGELOG.md.gz" "${documents}/changelog.gz" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)

# The Debian package; its dependencies are read from the program.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME attnscope)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "attention visualizer: edit it, watch it, explain it")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "A desktop program in which attention is taken apart with one's own hands:
embeddings and projections are edited in place, and every stage of every
head moves under the cursor, computed in double precision. It reads
checkpoints and tensors of PyTorch, NumPy and Hugging Face, compares them
stage by stage, and names the mistake that explains a difference. All of it
is also a command that needs no display.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libgl1-mesa-dri")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
