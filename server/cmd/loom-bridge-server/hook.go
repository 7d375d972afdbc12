package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/server/hooks"
)

const (
	// hookTime is how long a hook may take; hosts wait a little longer, hosts.HookSeconds.
	hookTime = 8 * time.Second
	// envClaudeProject is the root of the project that Claude Code works in.
	envClaudeProject = "CLAUDE_PROJECT_DIR"
)

const hookHelp = `Record an event of a host's session: the host runs this command on its events and writes
each event to standard input. ` + "`loom-bridge-server mcp install HOST`" + `
sets it up. The session gets the prompts, each call of a tool with its result, and the
answers. When a session begins, the model gets context: long-term memory and the previous
session; after the host has compacted its conversation, a summary of it.

HOST is claude-code, codex, cursor or vscode, EVENT the host's name for it. The server is
that of ` + "`loom-bridge-server mcp`" + ` in the same project, or the one on --addr; where none
runs, the command serves for as long as it takes. It never stops a host: errors are
written to standard error, with the exit status 1, which hosts show and go on.`

// hookCommand does what a host's event asks for.
func hookCommand(env environment, stdout, stderr io.Writer) *cobra.Command {
	s := &shim{env: env, stderr: stderr}
	command := &cobra.Command{
		Use: "hook HOST EVENT", Short: "Record what happens in a coding agent's session, and return known context", Long: hookHelp,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			// A panic would end the process with 2, which stops hosts.
			defer func() {
				if value := recover(); value != nil {
					err = fmt.Errorf("hook: internal fault: %v\n%s", value, debug.Stack())
				}
			}()
			ctx, cancel := context.WithTimeout(cmd.Context(), hookTime)
			defer cancel()
			text, err := readInput(ctx, cmd.InOrStdin(), hooks.MaxInputBytes)
			if err != nil {
				return fmt.Errorf("hook: %w", err)
			}
			event, err := hooks.Parse(args[0], args[1], text)
			if err != nil {
				return err
			}
			if err := s.configure(cmd, cmp.Or(env.get(envClaudeProject), event.Project, ".")); err != nil {
				return err
			}
			if s.config.LogLevel == NewConfig().LogLevel {
				s.config.LogLevel = "warn" // a server for one event says little
			}
			answer, err := s.handle(ctx, event)
			if err != nil {
				return fmt.Errorf("hook %s %s: %w", args[0], args[1], err)
			}
			_, err = stdout.Write(event.Answer(answer))
			return err
		},
	}
	s.flags(command)
	return command
}

// readInput reads what there is, until ctx ends.
func readInput(ctx context.Context, from io.Reader, most int64) ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(from, most+1))
		read <- answer{text, err}
	}()
	select {
	case got := <-read:
		if int64(len(got.text)) > most {
			return nil, fmt.Errorf("%w: more than %d bytes on standard input", hooks.ErrInput, most)
		}
		return bytes.TrimSpace(got.text), got.err
	case <-ctx.Done():
		return nil, errors.New("standard input did not end in time")
	}
}

// handle does what an event asks for, at the server that runs, or serving meanwhile.
func (s *shim) handle(ctx context.Context, event hooks.Event) (answer string, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err = hooks.NewHandler(conn, s.actsAs(ctx, conn)).Handle(s.authorized(ctx), event)
		return err
	})
	return answer, err
}

// inProject moves unnamed places into a folder.
func (c Config) inProject(folder string) Config {
	none := NewConfig()
	if c.DataDir == none.DataDir {
		c.DataDir = filepath.Join(folder, none.DataDir)
	}
	if c.Workspace == none.Workspace {
		c.Workspace = folder
	}
	return c
}
