// What app/session/fibers_page.cpp takes from assets/web/page.js: one of these is no function but an object, which suspends who calls it.
addToLibrary({page_has_fibers: "=Module.page.hasFibers", page_enter: "=Module.page.enter", page_leave: "=Module.page.leave"});
