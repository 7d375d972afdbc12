// Command loom-bridge-server is the one process of Loom Bridge: it opens the
// store, builds everything on top of it and serves gRPC until it is told to
// stop. Run it with --help for its flags; without any it serves on
// 127.0.0.1:50051.
//
// Its files: main.go is the entry, run.go the wiring in the order things are
// built, config.go the settings, load.go their flags and where else they come
// from, check.go the sub-command that compares index and records, address.go
// what the server listens on, logwriter.go a log that never makes the server
// wait.
package main
