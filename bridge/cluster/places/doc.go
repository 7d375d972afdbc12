// Package places knows which of the servers on one store has the workspace of an agent, and
// takes calls there.
//
// A workspace is a folder. Where each server has its own folder, the first server that
// a call which touches the workspace comes to becomes its owner: it is kept in the store by
// the name of the folder, which outlives a restart. All agents of a tenant have one
// workspace, or each its own, as the servers are set; the owner is that of the workspace.
//
//   - [Places.Where] says which server runs a call, and makes this one the owner of a
//     workspace without an owner.
//   - [Remote] asks the server that has a workspace, with values in place of bytes.
//   - [Places.Forward] takes a call to another server, whose [Places.Serve] answers it.
//   - [Places.Move] gives a workspace to another server. No file is copied.
//
// A nil *Places is that of a server which is alone, or shares one folder with the others:
// every call runs here.
package places
