// The precompiled header of all rooms needs a target, and a target a source.
