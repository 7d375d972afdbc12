// Package workspaces is the command that says which of the servers on one store has the
// workspace of an agent, and gives it to another one.
package workspaces

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Options are what the commands work with. All are required.
type Options struct {
	// Dial connects to a server; ctx then has what its calls carry.
	Dial func(ctx context.Context) (context.Context, *grpc.ClientConn, error)
	Out  io.Writer
}

// Command is the command with its sub-commands.
func Command(o Options) *cobra.Command {
	command := &cobra.Command{
		Use: "workspace", Short: "Show or change which server has a workspace, where several have one store", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var agent, to string
	command.PersistentFlags().StringVar(&agent, "agent", "operator", "`id` of whose workspace; all agents of a tenant have one, unless the servers run with --own-workspace")
	move := o.sub("move", "Give it to another server that runs; its files are not copied", func(ctx context.Context, s loombridgev1.AdminServiceClient) error {
		before, err := s.GetStatus(ctx, &loombridgev1.GetStatusRequest{AgentId: agent})
		if err != nil {
			return err
		}
		moved, err := s.MoveWorkspace(ctx, &loombridgev1.MoveWorkspaceRequest{AgentId: agent, Server: to})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Out, "before: %s\nafter:  %s\nNo file was copied: copy the needed files to that folder.\n", line(before.GetWorkspace()), line(moved))
		return err
	})
	move.Flags().StringVar(&to, "to", "", "`name` of the server, or its folder as printed by show, if several have one name")
	_ = move.MarkFlagRequired("to") // it is there
	command.AddCommand(move, o.sub("show", "Show which server has it", func(ctx context.Context, s loombridgev1.AdminServiceClient) error {
		got, err := s.GetStatus(ctx, &loombridgev1.GetStatusRequest{AgentId: agent})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Out, line(got.GetWorkspace()))
		return err
	}))
	return command
}

// sub is a sub-command that talks to a server.
func (o Options) sub(use, short string, run func(ctx context.Context, s loombridgev1.AdminServiceClient) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, conn, err := o.Dial(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return run(ctx, loombridgev1.NewAdminServiceClient(conn))
	}}
}

// line describes a workspace. Names are quoted: what others wrote must not steer a terminal.
func line(w *loombridgev1.BridgeStatus) string {
	if w == nil {
		return "none; the server of the first call that touches it gets it"
	}
	state := "there"
	if w.GetAway() {
		state = "away"
	}
	return fmt.Sprintf("%q at %q, folder %q, %s", w.GetName(), w.GetAddress(), w.GetWorkspace(), state)
}
