# cmake --install: the program, and what a desktop needs to show it among its own.
include(GNUInstallDirs)
install(TARGETS attnscope RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES assets/attnscope.desktop DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")
install(FILES assets/attnscope.svg DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps")
install(DIRECTORY assets/examples DESTINATION "${CMAKE_INSTALL_DATADIR}/attnscope")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
