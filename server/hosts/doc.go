// Package hosts writes the configuration of hosts of the Model Context Protocol, such as
// editors and coding agents: where each keeps the servers that it starts and the commands
// that it runs on its events.
//
// An [Install] says for whom and what. Its [Install.Changes] are the files as they are
// and as they would be; nothing is written until [Change.Apply], which first keeps what
// was there, and [Change.Undo] brings that back byte for byte. Files are edited as text:
// comments, order, blanks and keys of others stay as they are. A file that can't be read
// as what it should be is refused and left alone. Nothing is written through a symbolic
// link, or outside the folder that the scope names.
//
// The files: host.go what there is to write for each host, json.go and toml.go how it
// gets into a text and out of it, change.go one file, keep.go what was there before.
package hosts
