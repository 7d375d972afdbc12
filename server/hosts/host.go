package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Server is the name of the server in the configuration of every host.
const Server = "loom-bridge"

// HookSeconds is how long a host may wait for a hook before it goes on without.
const HookSeconds = 10

// Scopes of an installation: one project, or all of a user's.
const (
	Project = "project"
	User    = "user"
)

var (
	// ErrUnknown: the host or the scope does not exist.
	ErrUnknown = errors.New("hosts: unknown")
	// ErrNoProject: no installation has written into a folder, or into one above it.
	ErrNoProject = errors.New("hosts: no project")
)

// Places are the folders that files are written in.
type Places struct {
	// Project is the root of the project.
	Project string
	// Home is the user's own folder.
	Home string
	// Config is where programs of the user keep their settings.
	Config string
	// Claude and Codex are where these hosts keep the user's settings, if not in
	// Home/.claude and Home/.codex.
	Claude, Codex string
}

// Install lists the files written for one host.
type Install struct {
	// Host is one of Names.
	Host string
	// Scope is Project or User.
	Scope  string
	Places Places
	// Program is what starts the server's program: its path, its name, or a package's runner
	// and the name of the package. It is not empty.
	Program []string
	// Arguments go behind `mcp` and behind `hook HOST EVENT`.
	Arguments []string
	// Variables are names of variables that the server needs of the host's environment.
	Variables []string
	// NoHooks leaves the hooks out.
	NoHooks bool
}

// events are the hooks of each host, by its own names, in the order of a session.
var events = map[string][]string{
	"claude-code": {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact", "Stop"},
	"codex":       {"SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop"},
	"cursor":      {"sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "preCompact", "afterAgentResponse", "stop"},
	"vscode":      {"SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop"},
}

// ProjectFlag is the flag of the server's commands for hosts that says whose project they
// work in, so that they look for it by ProjectOf.
const ProjectFlag = "project-of"

// ProjectOf is the project of a host that works in a folder: that folder or the nearest above
// it whose file of the host has the server. A file that can't be read as what it should be
// counts as none. Without any it is ErrNoProject.
func ProjectOf(host, folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for at := folder; ; at = filepath.Dir(at) {
		all, err := Install{Host: host, Scope: Project, Places: Places{Project: at}, Program: []string{""}}.files()
		if err != nil {
			return "", err
		}
		servers := all[0]
		text, _, err := Change{base: servers.base, name: servers.path}.read()
		if err == nil {
			if rest, err := servers.edits[0].take(text); err == nil && !bytes.Equal(rest, text) {
				return at, nil
			}
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%w: neither %s nor a folder above it has the server in %s; `mcp install %s` writes it", ErrNoProject, folder, servers.path, host)
		}
	}
}

// Names are the hosts there are.
func Names() []string { return []string{"claude-code", "codex", "cursor", "vscode"} }

// file is one file of a host, and what of it is ours.
type file struct {
	base, path string
	edits      []edit
}

// edit puts something of ours into a text, and takes it out again. Both leave a text
// alone that has it, or has it not.
type edit interface {
	put(text []byte) ([]byte, error)
	take(text []byte) ([]byte, error)
}

// files are what there is to write, the servers first.
func (i Install) files() ([]file, error) {
	if !slices.Contains(Names(), i.Host) {
		return nil, fmt.Errorf("%w host %q; there are %s", ErrUnknown, i.Host, strings.Join(Names(), ", "))
	}
	if i.Scope != Project && i.Scope != User {
		return nil, fmt.Errorf("%w scope %q; there are %s, %s", ErrUnknown, i.Scope, Project, User)
	}
	all := map[string]func() []file{"claude-code": i.claudeCode, "codex": i.codex, "cursor": i.cursor, "vscode": i.vscode}[i.Host]()
	if i.NoHooks {
		all = all[:1]
	}
	return all, nil
}

func (i Install) claudeCode() []file {
	servers := file{i.Places.Project, ".mcp.json", []edit{i.server("mcpServers", nil)}}
	hooks := file{i.Places.Project, ".claude/settings.json", i.nestedHooks()}
	switch {
	case i.Scope == User && i.Places.Claude != "":
		servers.base, servers.path = i.Places.Claude, ".claude.json"
		hooks.base, hooks.path = i.Places.Claude, "settings.json"
	case i.Scope == User:
		servers.base, servers.path = i.Places.Home, ".claude.json"
		hooks.base = i.Places.Home
	}
	return []file{servers, hooks}
}

func (i Install) codex() []file {
	// Codex starts servers where its session works, which may be a folder of the project, and
	// has no name for the project itself.
	if i.Scope == Project {
		i.Arguments = append([]string{"--" + ProjectFlag, i.Host}, i.Arguments...)
	}
	servers := file{i.Places.Project, ".codex/config.toml", []edit{tomlServer{slices.Concat(i.Program, []string{"mcp"}, i.Arguments), i.Variables}}}
	hooks := file{i.Places.Project, ".codex/hooks.json", i.nestedHooks()}
	switch {
	case i.Scope == User && i.Places.Codex != "":
		servers.base, servers.path = i.Places.Codex, "config.toml"
		hooks.base, hooks.path = i.Places.Codex, "hooks.json"
	case i.Scope == User:
		servers.base, hooks.base = i.Places.Home, i.Places.Home
	}
	return []file{servers, hooks}
}

func (i Install) cursor() []file {
	base := i.Places.Project
	if i.Scope == User {
		base = i.Places.Home
	}
	hooks := []edit{jsonDefault{"version", "1"}}
	for _, event := range events[i.Host] {
		hooks = append(hooks, jsonElement{[]string{"hooks", event}, object(
			objectField{"command", i.hook(event)}, objectField{"timeout", HookSeconds}), i.mark(event)})
	}
	return []file{
		{base, ".cursor/mcp.json", []edit{i.server("mcpServers", i.inProject("${workspaceFolder}"))}},
		{base, ".cursor/hooks.json", hooks},
	}
}

func (i Install) vscode() []file {
	servers := file{i.Places.Project, ".vscode/mcp.json", []edit{i.server("servers", i.inProject("${workspaceFolder}"))}}
	hooks := file{base: i.Places.Project, path: ".github/hooks/loom-bridge.json"}
	if i.Scope == User {
		servers.base, servers.path = i.Places.Config, "Code/User/mcp.json"
		hooks.base, hooks.path = i.Places.Home, ".copilot/hooks/loom-bridge.json"
	}
	for _, event := range events[i.Host] {
		hooks.edits = append(hooks.edits, jsonElement{[]string{"hooks", event}, i.command(event), i.mark(event)})
	}
	return []file{servers, hooks}
}

// inProject are the arguments that say which folder is worked on.
func (i Install) inProject(folder string) []string {
	return []string{"--workspace", folder, "--data-dir", folder + "/.loom/store"}
}

// server is the entry of the server in a file of JSON.
func (i Install) server(list string, arguments []string) edit {
	return jsonMember{[]string{list, Server}, object(
		objectField{"type", "stdio"}, objectField{"command", i.Program[0]},
		objectField{"args", slices.Concat(i.Program[1:], []string{"mcp"}, arguments, i.Arguments)})}
}

// nestedHooks are hooks in the form that Claude Code and Codex share.
func (i Install) nestedHooks() []edit {
	var all []edit
	for _, event := range events[i.Host] {
		all = append(all, jsonElement{[]string{"hooks", event}, object(objectField{"hooks", []any{i.command(event)}}), i.mark(event)})
	}
	return all
}

func (i Install) command(event string) any {
	return object(objectField{"type", "command"}, objectField{"command", i.hook(event)}, objectField{"timeout", HookSeconds})
}

// hook is the line that a host gives to a shell.
func (i Install) hook(event string) string {
	words := slices.Concat(i.Program, []string{"hook", i.Host, event}, i.Arguments)
	for n, word := range words {
		words[n] = quoted(word)
	}
	return strings.Join(words, " ")
}

// mark distinguishes this server's hook of an event from others.
func (i Install) mark(event string) string { return " hook " + i.Host + " " + event }

// quoted is a word as shells read it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@,+%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// whole is the path of a file.
func (f file) whole() string { return filepath.Join(f.base, filepath.FromSlash(f.path)) }
