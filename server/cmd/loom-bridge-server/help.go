package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	helpLong = `Serve memory, context, tools and events to agents over gRPC.

Every setting can be given as a flag, in the environment as LOOM_BRIDGE_ and its
name in capitals (LOOM_BRIDGE_DATA_DIR), or in the file of --config without the
dashes in front (data-dir = "/var/lib/loom"). A flag is stronger than the
environment, the environment is stronger than the file. RUST_LOG sets the log
level, too.`

	helpExamples = `  loom-bridge-server
  loom-bridge-server --addr 127.0.0.1:0 --addr-file /run/loom.addr --workspace ~/project
  loom-bridge-server --addr 0.0.0.0:50051 --credentials callers.toml --tls-cert cert.pem --tls-key key.pem
  loom-bridge-server --addr unix:/run/loom.sock --metrics-addr :9090
  loom-bridge-server check --data-dir ./.loom/store`

	helpCredentials = `The file of --credentials has one table for each caller, with exactly one of
token_sha256 (the SHA-256 of its bearer token, in hex), token (the token itself)
and subject (a name in its client certificate):

  [[credential]]
  token_sha256 = "2bb8..."
  tenant = "acme"               # whose data it sees
  agents = ["researcher-*"]     # whom it may act for: ids, or a beginning and *
  provides = ["research:*"]     # tools that these agents may provide; default all
  edits = ["archivist"]         # others whose records in shared memories it may change
  reads_users = ["ann"]         # persons whose memories it may read; writes_users and
                                # administers_users: write, grant
  approves = ["researcher-*"]   # agents whose calls it may approve; for people
  operates = true               # it runs the server: backups, scopes; for people
  expires = 2027-01-01T00:00:00Z`

	// everything is the topic of the help that shows all groups.
	everything = "all"
)

// printHelp writes the help of the server itself: the everyday settings, and
// which others there are.
func printHelp(to io.Writer, root *cobra.Command) {
	c := NewConfig()
	fmt.Fprintf(to, "%s\n\nUsage:\n  %s [flags]\n  %[2]s COMMAND [flags]\n\nCommands:\n", helpLong, root.Name())
	for _, command := range root.Commands() {
		if command.Runnable() && !command.Hidden {
			fmt.Fprintf(to, "  %-9s  %s\n", command.Name(), command.Short)
		}
	}
	fmt.Fprintf(to, "\nExamples:\n%s\n", helpExamples)
	for _, g := range c.groups() {
		if g.everyday {
			printGroup(to, g)
		}
	}
	fmt.Fprintf(to, "\nMore settings, shown by `%s help GROUP` or `help %s`:\n", root.Name(), everything)
	for _, g := range c.groups() {
		if !g.everyday {
			fmt.Fprintf(to, "  %-10s %2d  %s\n", g.name, len(g.settings), g.title)
		}
	}
	fmt.Fprintf(to, "\n%s\n\nCommands end with 2 for a line that can't be followed, 3 for what is not found, 4 for what is denied, 5 where no\nserver answers, else with 1; hook with 1 alone.\n\n  --help     this text\n  --version  the version\n", helpCredentials)
}

// maxUsage is the longest flag with its value that is on the same line as its description;
// a longer one is on a separate line above.
const maxUsage = 40

// printGroup writes the settings of a group, a line for each: the flag, what its
// value is, what it does and its default.
func printGroup(to io.Writer, g group) {
	fmt.Fprintf(to, "\n%s:\n", g.title)
	width := 0
	for _, s := range g.settings {
		if n := len(s.usage()); n <= maxUsage {
			width = max(width, n)
		}
	}
	for _, s := range g.settings {
		usage := s.usage()
		if len(usage) > maxUsage {
			fmt.Fprintln(to, "  "+usage)
			usage = ""
		}
		line := fmt.Sprintf("  %-*s  %s", width, usage, s.help)
		if value := shown(s.to); value != "" && value != "0" && value != "0s" && s.by != nil {
			line += " (" + value + ")"
		}
		fmt.Fprintln(to, line)
	}
}

// usage is the flag and what its value is.
func (s setting) usage() string {
	if s.by == nil && s.to.unit() == "true|false" {
		return "--" + s.name
	}
	return "--" + s.name + " " + s.to.unit()
}

// addHelp gives the server its own help, and its sub-commands cobra's.
func addHelp(root *cobra.Command) {
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd == root {
			printHelp(cmd.OutOrStdout(), root)
			return
		}
		usual(cmd, args)
	})
	c := NewConfig()
	groups := c.groups()
	for _, topic := range helpTopics() {
		if named, _, err := root.Find([]string{topic.Name()}); err != nil || named == root {
			root.AddCommand(topic)
		}
	}
	root.SetHelpCommand(&cobra.Command{
		Use: "help [command]", Short: "Help about a command or a group of settings",
		RunE: func(_ *cobra.Command, args []string) error {
			of, rest, err := root.Find(args)
			if of == root && len(args) > 0 {
				rest, err = args, nil
			}
			if err != nil || len(rest) > 0 {
				near := nearestCommand(of, rest[0], " --help")
				if near == "" {
					return fmt.Errorf("%s has no %q", of.CommandPath(), rest[0])
				}
				return fmt.Errorf("there is no help about %q; %s", rest[0], near)
			}
			if err := of.Help(); err != nil || of.Parent() != root || !of.Runnable() {
				return err
			}
			for _, g := range groups { // a command and a group may have one name
				if g.name == of.Name() {
					printGroup(of.OutOrStdout(), g)
				}
			}
			return nil
		},
	})
}

// helpTopics are `help GROUP` for every group of settings, and `help all`.
func helpTopics() []*cobra.Command {
	c := NewConfig()
	all := &cobra.Command{Use: everything, Short: "Every setting"}
	all.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		for _, g := range c.groups() {
			printGroup(cmd.OutOrStdout(), g)
		}
	})
	topics := []*cobra.Command{all}
	for _, g := range c.groups() {
		topic := &cobra.Command{Use: g.name, Short: g.title}
		topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printGroup(cmd.OutOrStdout(), g) })
		topics = append(topics, topic)
	}
	return topics
}

// deleting are the commands that delete; a word is taken for one only if it is one letter off.
var deleting = []string{"erase", "forget", "prune", "undo", "unrelate", "uninstall"}

// nearestCommand says which sub-command of a command, as it is typed with what is behind, a
// wrong name most likely means, or where they are listed; it is empty where there is none.
func nearestCommand(of *cobra.Command, wrong, behind string) string {
	if !of.HasSubCommands() {
		return ""
	}
	var names []string
	for _, known := range of.Commands() {
		if name := known.Name(); !slices.Contains(deleting, name) || text.Distance(wrong, name) <= 1 {
			names = append(names, name)
		}
	}
	if near, ok := text.Near(wrong, names); ok {
		return fmt.Sprintf("nearest is `%s %s%s`", of.CommandPath(), near, behind)
	}
	return fmt.Sprintf("see `%s --help`", of.CommandPath())
}

// wrongArguments are cobra's errors about how many arguments there are.
var wrongArguments = regexp.MustCompile(`^(accepts|requires) .*arg\(s\)`)

// suggestCommand says how a command is called whose arguments are too few or too many, and adds the nearest command to cobra's error about an unknown one, which has no
// type.
func suggestCommand(of *cobra.Command, err error) error {
	var wrong string
	if err == nil {
		return nil
	}
	if wrongArguments.MatchString(err.Error()) {
		return usageError{fmt.Errorf("%s: %w; see %s --help", of.UseLine(), err, of.CommandPath())}
	}
	if _, other := fmt.Sscanf(err.Error(), "unknown command %q", &wrong); other != nil {
		return err
	}
	if near := nearestCommand(of, wrong, ""); near != "" {
		return usageError{fmt.Errorf("%w; %s", err, near)}
	}
	return usageError{fmt.Errorf("%w, which takes no arguments; see %s --help", err, of.CommandPath())}
}
