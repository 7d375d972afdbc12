// Package installs is the commands that write the configuration of a host, and take it away.
package installs

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/server/hosts"
)

const (
	installHelp = `Write a host's own configuration, so that it starts this server, and sends it the events
of its sessions. Changes are shown first; --print only shows them, --yes does not ask. The
old content is kept: ` + "`mcp uninstall HOST`" + ` brings it back byte for
byte, or, if the file was changed since, removes only our entries. Comments, order
and other keys stay as they are. Arguments after -- go to the server: -- --agent anna.

  HOST         --scope project (default)                      --scope user
  claude-code  .mcp.json, .claude/settings.json               ~/.claude.json, ~/.claude/settings.json
  codex        .codex/config.toml, .codex/hooks.json          the same in ~
  cursor       .cursor/mcp.json, .cursor/hooks.json           the same in ~
  vscode       .vscode/mcp.json, .github/hooks/               Code/User/mcp.json, ~/.copilot/hooks/

The command that is written is ` + "`uvx loombridge-server` or `npx -y loom-bridge`" + ` if this program is
from that package and uvx or npx is on the PATH, and works on every machine of a team. Otherwise
it is the program's name or, where the PATH has another or none, its path. No file of a project
names its folder: Codex's server looks for it, from where Codex works upwards (--project-of).

A host reads it when it starts. Claude Code asks before it uses servers of a project; Codex
runs hooks once they are trusted (/hooks), and reads a project's files in trusted ones only.`

	uninstallHelp = `Take away what ` + "`mcp install HOST`" + ` wrote. A file unchanged since is restored byte
for byte; from a changed one only our entries are removed. Changes are shown first.`
)

// errNotWritten: a person was asked and did not agree.
var errNotWritten = errors.New("nothing is written; --yes writes it without asking")

// Options are what the commands work with. All are required.
type Options struct {
	// Getenv is the value of a variable of the environment.
	Getenv func(name string) string
	// Passed are the variables that a host gives to the server, where they are set.
	Passed []string
	// Check refuses arguments that the server would refuse when a host starts it.
	Check func(arguments []string) error
	Out   io.Writer
}

// installer writes the configuration of one host, or takes it away.
type installer struct {
	Options
	stdin io.Reader

	host               hosts.Install
	yes, print, remove bool
}

// Install is the command that writes.
func Install(o Options) *cobra.Command { return command(&installer{Options: o}) }

// Uninstall is the command that takes away.
func Uninstall(o Options) *cobra.Command { return command(&installer{Options: o, remove: true}) }

func command(i *installer) *cobra.Command {
	command := &cobra.Command{
		Use: "uninstall HOST", Short: "Take away what install wrote", Long: uninstallHelp, ValidArgs: hosts.Names(), Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			i.stdin = cmd.InOrStdin()
			return i.run(args)
		},
	}
	if !i.remove {
		command.Use, command.Short, command.Long = "install HOST [-- FLAGS]", "Write a host's configuration: claude-code, codex, cursor, vscode", installHelp
		command.Args = cobra.MinimumNArgs(1)
		command.Flags().BoolVar(&i.host.NoHooks, "no-hooks", false, "the server alone, without the hooks")
		command.Flags().BoolVar(&i.remove, "undo", false, "the same as uninstall")
	}
	command.Flags().StringVar(&i.host.Scope, "scope", hosts.Project, "`project|user`: the files of the current directory, or the user's own")
	command.Flags().BoolVar(&i.print, "print", false, "show what would change and write nothing")
	command.Flags().BoolVarP(&i.yes, "yes", "y", false, "write without asking")
	return command
}

func (i *installer) run(args []string) (err error) {
	i.host.Host, i.host.Arguments = args[0], args[1:]
	if err := i.Check(i.host.Arguments); err != nil {
		return err
	}
	kept, err := i.place()
	if err != nil {
		return err
	}
	read, write := hosts.Install.Changes, hosts.Change.Apply
	if i.remove {
		read, write = hosts.Install.Removals, hosts.Change.Undo
	}
	changes, err := read(i.host, kept)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(changes, func(c hosts.Change) bool { return !c.Same() }) {
		if err := i.agree(changes); err != nil || i.print {
			return err
		}
	} else {
		fmt.Fprintln(i.Out, "Nothing to change.")
		if i.print {
			return nil
		}
	}
	for _, c := range changes {
		if err := write(c); err != nil {
			return err
		}
		if !c.Same() {
			fmt.Fprintln(i.Out, "Written:", c.Path)
		}
	}
	return nil
}

// place finds out what stands where, and where what was there is kept.
func (i *installer) place() (kept string, err error) {
	if i.host.Places.Project, err = os.Getwd(); err != nil {
		return "", err
	}
	if i.host.Places.Home, err = os.UserHomeDir(); err != nil {
		return "", err
	}
	if i.host.Places.Config, err = os.UserConfigDir(); err != nil {
		return "", err
	}
	i.host.Places.Claude, i.host.Places.Codex = i.Getenv("CLAUDE_CONFIG_DIR"), i.Getenv("CODEX_HOME")
	if i.host.Program, err = i.program(); err != nil {
		return "", err
	}
	// Hosts that give a server few variables get the list that it needs.
	for _, name := range i.Passed {
		if i.Getenv(name) != "" {
			i.host.Variables = append(i.host.Variables, name)
		}
	}
	state := cmp.Or(i.Getenv("XDG_STATE_HOME"), filepath.Join(i.host.Places.Home, ".local", "state"))
	return filepath.Join(state, "loom-bridge", "hosts"), nil
}

// runners start the program of a package on every machine that has them, and fetch it where it
// is missing. What a package brings is known by the folder that it lies in.
var runners = []struct {
	folder  *regexp.Regexp
	command []string
}{
	{regexp.MustCompile(`/loombridge_server$`), []string{"uvx", "loombridge-server"}},
	{regexp.MustCompile(`/node_modules/@loom-bridge/[^/]+/bin$`), []string{"npx", "-y", "loom-bridge"}},
}

// program is what starts this program, so that a project's files fit on other machines: the
// runner of the package that it is from, or its name where a shell finds it by that. It is its
// path only where a shell here finds neither.
func (i *installer) program() ([]string, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, r := range runners {
		if r.folder.MatchString(filepath.ToSlash(filepath.Dir(path))) && i.find(r.command[0]) != "" {
			return r.command, nil
		}
	}
	here, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if there, err := os.Stat(i.find(name)); err == nil && os.SameFile(here, there) {
		return []string{name}, nil
	}
	return []string{path}, nil
}

// find is the path of the program that a shell starts by a name; empty for none.
func (i *installer) find(name string) string {
	for _, folder := range filepath.SplitList(i.Getenv("PATH")) {
		path := filepath.Join(folder, name)
		if found, err := os.Stat(path); err == nil && !found.IsDir() {
			return path
		}
	}
	return ""
}

// agree shows the changes and asks whether to write them.
func (i *installer) agree(changes []hosts.Change) error {
	for _, c := range changes {
		fmt.Fprint(i.Out, c.Diff())
	}
	if i.yes || i.print {
		return nil
	}
	fmt.Fprint(i.Out, "Write this? [y/N] ")
	answer, err := bufio.NewReader(i.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotWritten
}
