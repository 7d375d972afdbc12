// Package instruct says who may instruct a model: it is the table of every text that can
// enter a prompt, with who writes it, in which role it may stand, how it is framed there, and
// who may take it away.
//
// A text instructs where it stands in the role of the system, or of the developer, or as the
// bare words of the user. [Row.Role] is the one place where such a role is given: whatever
// lays out a prompt asks it with who wrote the text, and a text without a row stands in none
// of them. A role is never the sender's to choose.
package instruct

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// Who are kinds of writers, any number of them.
type Who uint16

const (
	// Operator runs the server: its settings, and approvals of persons.
	Operator Who = 1 << iota
	// Program is the agent's own, which calls the API: its requests, the settings and messages
	// of its sessions, the records that it saves.
	Program
	// Parent is the program of the agent that made this one.
	Parent
	// Instructor is another agent whose direct messages the session's settings let instruct.
	Instructor
	// Agent is any other agent, however its words come: messages, events, memories that are
	// shared.
	Agent
	// Model is a model, the agent's own or another's, through its tools.
	Model
	// Tool is what a tool printed, a page, a file, or a server of the Model Context Protocol
	// gave, in results and in what it says of itself.
	Tool
	// Import is a file of records that was imported.
	Import
)

// names are the names of the kinds, in order.
var names = []string{"operator", "program", "parent", "instructor", "agent", "model", "tool", "import"}

// Names are the names of the kinds.
func (w Who) Names() (all []string) {
	for i, name := range names {
		if w&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return all
}

// String lists the kinds: "operator, program".
func (w Who) String() string { return strings.Join(w.Names(), ", ") }

// Everybody is everybody.
const Everybody = Operator | Program | Parent | Instructor | Agent | Model | Tool | Import

// Source names a text that can enter a prompt.
type Source string

// Row is what holds for the texts of a source.
type Row struct {
	Source Source
	// About says what it is, for people.
	About string
	// Writers can write it; the words of Instructors, a subset of them, count as
	// instructions. Removers may change, replace and remove it.
	Writers, Instructors, Removers Who
	// Role is the role of an instructor's words, Otherwise the role of all others' words,
	// which are always framed.
	Role, Otherwise session.Role
	// Frame says how it is distinguished from the words of others.
	Frame string
}

// RoleOf is the role in which the words of a writer stand. Where several wrote, all of them
// must be instructors.
func (r *Row) RoleOf(writers Who) session.Role {
	if writers != 0 && writers&^r.Instructors == 0 {
		return r.Role
	}
	return r.Otherwise
}

// Instructs reports whether a writer's words of the source instruct.
func (r *Row) Instructs(writers Who) bool { return writers != 0 && writers&^r.Instructors == 0 }

// Of is the row of a source. One that has none is written by everybody, never instructs and
// stands in the role of the user.
func Of(s Source) *Row {
	if at, ok := places[s]; ok {
		return &table[at]
	}
	return &unknown
}

var unknown = Row{About: "a text that no row names", Writers: Everybody, Removers: Everybody, Otherwise: session.User, Frame: "none"}

var places = func() map[Source]int {
	m := make(map[Source]int, len(table))
	for i := range table {
		m[table[i].Source] = i
	}
	return m
}()

// Table are all rows, in the order of a prompt. It belongs to the caller.
func Table() []Row { return slices.Clone(table) }

// Kinds are the kinds of memory records that stand where a prompt instructs its model what to
// do. What a program saved of them no model changes, replaces or removes.
func Kinds() []string { return []string{"skill", "playbook", "note", "knowledge"} }
