// What app/session/fibers_page.cpp takes from assets/web/page.js: one of these is no function but an object, which suspends who calls it.
addToLibrary({fibers_are_here: "=Module.page.hasFibers", fibers_enter: "=Module.page.enter", fibers_leave: "=Module.page.leave"});
