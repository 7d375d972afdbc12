package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

// installed is a program of the machine, and the places it must read: an interpreter, its
// libraries, the packages next to it.
type installed struct {
	path  string   // absolute; no folder on the way to it is a link
	reads []string // absolute places, in order
}

// Bounds of the search for what a program reads.
const (
	maxFollowed  = 8   // interpreters and links from one program to the next
	maxFirstLine = 512 // bytes of the line that names an interpreter
)

// errFetches says why a program that fetches others does not work inside.
var errFetches = errors.New("it fetches the program when it starts, and there is no network inside: install the program and name it, or give a [profile.mcp] with mode = \"net\" the hosts of the registry")

// find looks a command of a server up as its writer would: in the folders of the
// sandbox, then in the folders of search, a list such as PATH; a path is taken as it is. A
// command found in neither is left to the sandbox, whose error names it.
func find(command, search string, args []string) installed {
	path := command
	if !strings.Contains(command, "/") {
		if path = lookUp(command, sandbox.Path); path != "" {
			return installed{path: command, reads: argumentsOf(args)} // seen inside by its name
		}
		if path = lookUp(command, search); path == "" {
			return installed{path: command}
		}
	}
	if !filepath.IsAbs(path) {
		return installed{path: command, reads: argumentsOf(args)} // in the workspace
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return installed{path: command}
	}
	i := installed{path: filepath.Join(folder, filepath.Base(path))}
	i.follow(i.path, maxFollowed)
	i.reads = outermost(append(i.reads, argumentsOf(args)...))
	return i
}

// outermost leaves out the places that lie in another one.
func outermost(places []string) (left []string) {
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		if !slices.ContainsFunc(left, func(wider string) bool { return strings.HasPrefix(place, wider+"/") }) {
			left = append(left, place)
		}
	}
	return left
}

func lookUp(name, folders string) string {
	for _, folder := range filepath.SplitList(folders) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// argumentsOf are the places that a program's arguments name as programs: a script in a
// package, as in `node /opt/x/node_modules/server/index.js`. What they name as data stays
// out of reach unless the profile gives it.
func argumentsOf(args []string) []string {
	var i installed
	for _, arg := range args {
		if !filepath.IsAbs(arg) {
			continue
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(arg))
		if err != nil {
			continue
		}
		path := filepath.Join(folder, filepath.Base(arg))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && isScript(path) {
			i.follow(path, maxFollowed)
		}
	}
	return outermost(i.reads)
}

func isScript(path string) bool {
	return slices.Contains([]string{".js", ".mjs", ".cjs", ".py", ".pyz", ".jar"}, filepath.Ext(path))
}

// follow adds what a program reads. Its folders are no links.
func (i *installed) follow(path string, left int) {
	if left == 0 || inSystem(path) {
		return
	}
	switch root := packageRoot(path); {
	case root != "":
		i.add(root)
	default:
		i.reads = append(i.reads, path)
	}
	if home := homeOf(path); home != "" { // a virtual environment names its Python
		i.prefix(home)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	if info.Mode()&os.ModeSymlink != 0 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			i.follow(real, left-1)
		}
		return
	}
	if interpreter := interpreterOf(path); interpreter != "" {
		folder, err := filepath.EvalSymlinks(filepath.Dir(interpreter))
		if err == nil {
			i.follow(filepath.Join(folder, filepath.Base(interpreter)), left-1)
		}
		return
	}
	i.prefix(filepath.Dir(path))
}

// prefix adds the installation whose programs are in a folder bin.
func (i *installed) prefix(bin string) {
	bin, err := filepath.EvalSymlinks(bin)
	if err != nil || filepath.Base(bin) != "bin" || inSystem(bin) {
		return
	}
	prefix := filepath.Dir(bin)
	if info, err := os.Stat(filepath.Join(prefix, "lib")); err != nil || !info.IsDir() {
		return
	}
	i.add(bin)
	for _, part := range []string{"lib", "lib64", "libexec", "include", "share"} {
		i.add(filepath.Join(prefix, part))
	}
}

// add adds a place unless it is so wide that it holds more than programs.
func (i *installed) add(place string) {
	home, _ := os.UserHomeDir()
	for _, wide := range []string{"/", "/home", "/root", "/etc", "/tmp", "/var", "/srv", "/mnt", "/proc", "/sys", "/dev", "/run", home} {
		if place == wide {
			return
		}
	}
	if _, err := os.Stat(place); err == nil {
		i.reads = append(i.reads, place)
	}
}

// inSystem reports whether everything inside sees a place already.
func inSystem(path string) bool {
	for _, folder := range []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/"} {
		if strings.HasPrefix(path, folder) {
			return true
		}
	}
	return false
}

// packageRoot is the folder of packages that a program belongs to: a virtual environment
// of Python, or the outermost node_modules. Empty for none.
func packageRoot(path string) string {
	if at := strings.Index(path+"/", "/node_modules/"); at > 0 {
		return path[:at] + "/node_modules"
	}
	for folder := filepath.Dir(path); folder != "/"; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "pyvenv.cfg")); err == nil {
			return folder
		}
	}
	return ""
}

// homeOf is the folder of the Python that a virtual environment was made with.
func homeOf(path string) string {
	root := packageRoot(path)
	if root == "" || strings.HasSuffix(root, "/node_modules") {
		return ""
	}
	config, err := os.ReadFile(filepath.Join(root, "pyvenv.cfg"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(config)) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "home" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// interpreterOf is the program that the first line of a script names; empty for none, and
// for one that env looks up inside.
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, err := bufio.NewReaderSize(file, maxFirstLine).ReadSlice('\n')
	if err != nil || !bytes.HasPrefix(line, []byte("#!")) {
		return ""
	}
	fields := strings.Fields(string(line[2:]))
	if len(fields) == 0 || !filepath.IsAbs(fields[0]) || filepath.Base(fields[0]) == "env" {
		return ""
	}
	return fields[0]
}

// explain adds to why a program ended what its writer can do about it.
func explain(command string, err error) error {
	switch filepath.Base(command) {
	case "npx", "uvx", "uv", "pipx", "bunx", "pnpx":
		return fmt.Errorf("%w (%w)", err, errFetches)
	}
	return err
}
