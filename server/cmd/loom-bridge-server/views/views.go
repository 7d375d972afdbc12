// Package views are the commands that show what a running server knows: memories, sessions,
// prompts, agents, events, tools and jobs.
//
// Each command asks by the public API and prints a table or, with --json, the messages as the
// REST API has them, one a line. A table is as wide as the terminal, whose lines it cuts;
// into a file or a pipe it is written whole, unless COLUMNS says how wide. Everything is
// printed with what would steer the terminal, turn its text around or hide in it made visible.
package views

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const (
	// maxListed is the most that --limit may ask for: a table is held in memory.
	maxListed = 10_000
	// maxHits is the most that a search may ask for.
	maxHits = 100
)

// Options are what the commands work with. All are required.
type Options struct {
	// Dial connects to the server; ctx then has what its calls carry.
	Dial func(ctx context.Context) (context.Context, *grpc.ClientConn, error)
	// Getenv reads the environment.
	Getenv func(name string) string
	// Refuse is the error that says what is wrong with the value of a flag.
	Refuse  func(flag, value, problem string) error
	In      io.Reader
	Out     io.Writer
	Console io.Writer
}

// view is one run of a command.
type view struct {
	Options
	agent, session string
	json           bool
	limit          int
	conn           *grpc.ClientConn
}

func (v *view) memory() loombridgev1.MemoryServiceClient {
	return loombridgev1.NewMemoryServiceClient(v.conn)
}

func (v *view) bridge() loombridgev1.BridgeServiceClient {
	return loombridgev1.NewBridgeServiceClient(v.conn)
}

func (v *view) sessions() loombridgev1.SessionServiceClient {
	return loombridgev1.NewSessionServiceClient(v.conn)
}

func (v *view) prompts() loombridgev1.PromptServiceClient {
	return loombridgev1.NewPromptServiceClient(v.conn)
}

func (v *view) tools() loombridgev1.ToolServiceClient {
	return loombridgev1.NewToolServiceClient(v.conn)
}

func (v *view) admin() loombridgev1.AdminServiceClient {
	return loombridgev1.NewAdminServiceClient(v.conn)
}

// group is a command of sub-commands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	command.AddCommand(subs...)
	return command
}

// command is one that talks to the server, with an example of how it is called.
func (v *view) command(use, short, example string, args cobra.PositionalArgs, run func(ctx context.Context, args []string) error) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: args, Example: "  loom-bridge-server " + strings.ReplaceAll(example, "\n", "\n  loom-bridge-server ")}
	command.RunE = func(cmd *cobra.Command, given []string) error {
		if cmd.Flags().Lookup("agent") != nil && v.agent == "" {
			return errors.New("--agent says whose it is; `loom-bridge-server agents` lists them")
		}
		ctx, conn, err := v.Dial(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		v.conn = conn
		return run(convert.AskText(ctx), given)
	}
	command.Flags().BoolVar(&v.json, "json", false, "write JSON, as the REST API has it: a message a line")
	return command
}

// asAgent gives a command the flag that says whose it is.
func (v *view) asAgent(command *cobra.Command) *cobra.Command {
	command.Flags().StringVar(&v.agent, "agent", "", "`id` of the agent (required)")
	return command
}

// inSession gives a command the flags that say whose session it is.
func (v *view) inSession(command *cobra.Command) *cobra.Command {
	v.asAgent(command).Flags().StringVar(&v.session, "session", "", "`id` of the session; default: default")
	return command
}

// listing gives a command the flag that says how much it lists. Each command of a view has a
// separate value, so that the default of one is not another's.
func (v *view) listing(command *cobra.Command, usual, most int) *cobra.Command {
	command.Flags().Int("limit", usual, fmt.Sprintf("the most `rows` to list, up to %d", most))
	command.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		v.limit, err = cmd.Flags().GetInt("limit")
		switch {
		case v.limit < 1:
			return v.Refuse("limit", strconv.Itoa(v.limit), "is less than 1")
		case v.limit > most:
			return v.Refuse("limit", strconv.Itoa(v.limit), fmt.Sprintf("is more than %d", most))
		}
		return err
	}
	return command
}

// write writes a message as a line of JSON.
func (v *view) write(m proto.Message) error {
	line, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(v.Out, text.VisibleJSON(string(line)))
	return err
}

// say writes a line.
func (v *view) say(format string, args ...any) error {
	_, err := fmt.Fprintln(v.Out, text.VisibleLine(fmt.Sprintf(format, args...)))
	return err
}

// answer writes a message as JSON, or as a line.
func (v *view) answer(m proto.Message, format string, args ...any) error {
	if v.json {
		return v.write(m)
	}
	return v.say(format, args...)
}

// pages fills a table from page after page, until there are as many rows as were asked for. With
// --json each page is written instead. ask gets a page behind a token, row adds an item to t.
func pages[Page interface {
	proto.Message
	GetNextPageToken() string
}, Item any](v *view, t *table, ask func(size int32, token string) (Page, error), items func(Page) []Item, row func(Item) []any) error {
	token := ""
	for left := v.limit; left > 0; {
		page, err := ask(int32(min(left, 100)), token)
		if err != nil {
			return err
		}
		if v.json {
			err = v.write(page)
		}
		if err != nil {
			return err
		}
		for _, item := range items(page) {
			t.add(row(item)...)
			left--
		}
		if token = page.GetNextPageToken(); token == "" {
			return v.print(t)
		}
	}
	t.more = token != ""
	return v.print(t)
}

// print writes a table.
func (v *view) print(t *table) error {
	if v.json {
		return nil
	}
	if err := t.write(v.Out, v.width()); err != nil {
		return err
	}
	if t.more {
		_, _ = fmt.Fprintf(v.Console, "there is more; --limit shows it (%d)\n", v.limit)
	}
	return nil
}

// width is how wide lines may be, 0 for any width.
func (v *view) width() int {
	if width, _, ok := v.terminal(); ok {
		return width
	}
	width, _ := strconv.Atoi(v.Getenv("COLUMNS"))
	return max(width, 0)
}

// terminal is the size of the terminal, if the output is one.
func (v *view) terminal() (width, height int, ok bool) {
	file, ok := v.Out.(*os.File)
	if !ok {
		return 0, 0, false
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// at is a moment as people here read it; empty for none, and for the beginning of 1970, which
// conversations have whose file said no times.
func at(t *timestamppb.Timestamp) string {
	if t == nil || t.AsTime().Unix() == 0 {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04")
}

// input is an argument, or standard input in place of none and of "-".
func (v *view) input(args []string) (string, error) {
	if len(args) > 0 && args[0] != "-" {
		return args[0], nil
	}
	const most = 4 << 20 // as much as a message may have
	all, err := io.ReadAll(io.LimitReader(v.In, most+1))
	if err == nil && len(all) > most {
		err = fmt.Errorf("standard input is longer than %d bytes", most)
	}
	return strings.TrimSuffix(string(all), "\n"), err
}
