package native

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loom-bridge/loom-bridge/bridge/protect"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// Options of the tools. Nil and zero fields mean the defaults.
type Options struct {
	// Store is the directory of the server's own data, which no tool touches.
	// It must exist. Default: none is refused.
	Store string
	// Blobs is where fs:read_file finds what prompts leave out. Default: nothing
	// is found there.
	Blobs Blobs
	// Memory is what the memory tools work on. Default: there are none.
	Memory Memory
	// Agents is what the tools of agents work on. Default: there are none.
	Agents Agents
	// Shell is how programs are run. Default: there are no tools that run any.
	Shell ShellOptions
}

// files holds what the file tools share. It is safe for concurrent use.
type files struct {
	store fs.FileInfo // nil without one
	// storePath is where it lies, absolute; empty without one.
	storePath string
	blobs     Blobs // nil without one
	locks     pathLocks
	follow    *protect.Follower
}

// Register adds the tools to a registry. An error leaves those before it there.
func Register(r *tools.Registry, opts *Options) error {
	f := &files{locks: pathLocks{seed: maphash.MakeSeed()}, follow: protect.NewFollower(nil)}
	if opts != nil {
		f.blobs = opts.Blobs
	}
	if opts != nil && opts.Store != "" {
		info, err := os.Stat(opts.Store)
		if err != nil {
			return fmt.Errorf("native: store: %w", err)
		}
		f.store = info
		if f.storePath, err = filepath.Abs(opts.Store); err != nil {
			return fmt.Errorf("native: store: %w", err)
		}
	}
	if err := add(r, f.tools()); err != nil {
		return err
	}
	if opts != nil && opts.Shell.Runner != nil {
		if err := add(r, newShell(f, opts.Shell).tools()); err != nil {
			return err
		}
	}
	if opts != nil && opts.Agents != nil {
		if err := add(r, agents{opts.Agents}.tools()); err != nil {
			return err
		}
	}
	if opts == nil || opts.Memory == nil {
		return nil
	}
	m := memories{opts.Memory}
	if err := add(r, m.tools()); err != nil {
		return err
	}
	for _, alias := range []string{"memory:query", "memory_query"} {
		if err := r.Alias(alias, "query_l4_memory"); err != nil {
			return fmt.Errorf("native: register: %w", err)
		}
	}
	return nil
}

func add(r *tools.Registry, list []tool) error {
	for _, t := range list {
		if err := r.AddShown(t.Descriptor, t.run, previewing(t.preview)); err != nil {
			return fmt.Errorf("native: register: %w", err)
		}
	}
	return nil
}

type tool struct {
	tools.Descriptor
	run     tools.Func
	preview tools.Preview // nil where the arguments say it all
}

func (f *files) tools() []tool {
	list := []tool{
		{tools.Descriptor{
			Name:           "fs:read_file",
			Description:    "Read a text file of the workspace, whole or some lines of it. Also reads back saved results, steps and messages by the path, id or ref they were given: step_012 is that step; a file of that name is ./step_012.",
			Schema:         json.RawMessage(readSchema),
			ResultKind:     "text",
			CLIEquivalents: []string{"cat", "head", "tail"},
		}, f.readFile, f.preview(false, false)},
		{tools.Descriptor{
			Name:           "fs:write_file",
			Description:    "Write a text file of the workspace. Missing folders are made; what the file held before is replaced, unless append is true.",
			Schema:         json.RawMessage(writeSchema),
			Mutates:        true,
			ResultKind:     "json",
			CLIEquivalents: []string{"echo", "tee"},
		}, f.writeFile, f.preview(true, false)},
		{tools.Descriptor{
			Name:           "fs:edit_file",
			Description:    "Change a text file of the workspace: replace text that stands in it exactly so, once or wherever it stands, or several texts at once. Encoding, line ends and permissions stay. Gives the diff.",
			Schema:         json.RawMessage(editSchema),
			Mutates:        true,
			ResultKind:     "json",
			CLIEquivalents: []string{"sed"},
		}, f.editFile, f.preview(true, false)},
		{tools.Descriptor{
			Name:           "fs:list_dir",
			Description:    "List a folder of the workspace, sorted by name.",
			Schema:         json.RawMessage(listSchema),
			ResultKind:     "list",
			CLIEquivalents: []string{"ls"},
		}, f.listDir, f.preview(false, false)},
		{tools.Descriptor{
			Name:           "fs:search",
			Description:    "Find lines in the text files below a folder of the workspace.",
			Schema:         json.RawMessage(searchSchema),
			ResultKind:     "search",
			CLIEquivalents: []string{"grep"},
		}, f.search, f.preview(false, false)},
		{tools.Descriptor{
			Name:           "fs:delete",
			Description:    "Delete a file or an empty folder of the workspace.",
			Schema:         json.RawMessage(pathSchema),
			Mutates:        true,
			ResultKind:     "json",
			CLIEquivalents: []string{"rm", "rmdir"},
		}, f.delete, f.preview(true, true)},
		{tools.Descriptor{
			Name:           "fs:stat",
			Description:    "Tell size, time, mode and hash of a file of the workspace.",
			Schema:         json.RawMessage(pathSchema),
			ResultKind:     "json",
			CLIEquivalents: []string{"stat"},
		}, f.stat, f.preview(false, false)},
	}
	for i := range list {
		list[i].Level, list[i].Category, list[i].Workspace = tools.LevelFunction, "file", true
		list[i] = f.confined(list[i])
	}
	return list
}

// The schemas of the tools' arguments. Lengths are checked by the tools, whose
// errors say more than a schema can.
const (
	readSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1,"description":"File to read, relative to the workspace"},
"offset":{"type":"integer","minimum":0,"description":"First line to read, counted from 1"},
"limit":{"type":"integer","minimum":0,"description":"How many lines to read (default 2000 when only offset is given)"},
"start_line":{"type":"integer","minimum":0,"description":"Same as offset"},
"end_line":{"type":"integer","minimum":-1,"description":"Last line to read (-1: to the end)"},
"offset_bytes":{"type":"integer","minimum":0,"description":"First byte to read, in place of lines"},
"limit_bytes":{"type":"integer","minimum":1,"description":"How many bytes to read"},
"encoding":{"type":"string","description":"Encoding of a file (default: found out), such as utf-16, latin-1, windows-1251"}},
"required":["path"]}`
	writeSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1,"description":"File to write, relative to the workspace"},
"content":{"type":"string","description":"Text to write"},
"append":{"type":"boolean","description":"Add to the end of the file instead of replacing it (default false)"},
"encoding":{"type":"string","description":"Encoding to write in (default utf-8; where text is added that of the file), such as utf-16, latin-1, windows-1251"},
"expected_sha256":{"type":"string","description":"Write nothing unless the file is there and has this hash, as stat told it"}},
"required":["path","content"]}`
	listSchema = `{"type":"object","properties":{
"path":{"type":"string","description":"Folder to list, relative to the workspace (default .)"}}}`
	searchSchema = `{"type":"object","properties":{
"query":{"type":"string","minLength":1,"description":"Text to find within a line"},
"path":{"type":"string","description":"File or folder to search (default .)"},
"include":{"type":"string","description":"Only files that match this glob, such as *.go or src/**/*.{ts,tsx}"},
"regex":{"type":"boolean","description":"The query is a regular expression (RE2; default false)"},
"ignore_case":{"type":"boolean","description":"Ignore case (default false)"},
"limit":{"type":"integer","minimum":1,"description":"Most matches to return (default 100, at most 1000)"}},
"required":["query"]}`
	pathSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1,"description":"File or folder, relative to the workspace"}},
"required":["path"]}`
)
