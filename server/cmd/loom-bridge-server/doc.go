// Command loom-bridge-server is the one process of Loom Bridge: it opens the
// store, builds everything on top of it and serves gRPC until it is told to
// stop. Run it with --help for its flags; without any it serves on
// 127.0.0.1:50051.
//
// Its files: main.go is the entry, run.go the wiring in the order things are
// built, settings.go the table of settings, fields.go what a value may be,
// config.go the values together, load.go and environment.go where they come from,
// help.go how they are shown, check.go the sub-command that compares index and
// records, export.go the one that writes what an agent did as files, address.go
// what the server listens on, logwriter.go a log that never makes the server wait.
package main
