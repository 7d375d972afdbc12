// Package commands knows what in a workspace gives commands to programs outside of the
// sandbox: hooks, and the settings of editors, agents and shells that name programs. Whoever
// changes one of these from inside has left the sandbox as soon as a person works on.
//
// A [Row] says what runs, when, and which document says so. The rows are what runs by itself,
// when a folder is opened, a shell goes into it, or a command runs that does something else:
// `git status`. A build file or a script, which runs because somebody asks for it, is none.
//
// A [Set] says which names these are, whatever a disk may take for the same name.
package commands
