// Package scopes is the command that lists whose memory a running server has.
package scopes

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const help = `List the owners of memories at the server on --addr: agents, then spaces, then persons, by
id, with the number of records, of archived records, and the approximate bytes on the disk,
without recent writes. If the server has credentials, only owners that the token may
administer are listed.

  loom-bridge-server scopes
  loom-bridge-server scopes --kind user --prefix ann
  loom-bridge-server scopes --json | jq -r .owner.agentId`

// pageSize is how many owners are asked for at once.
const pageSize = 500

// kinds are the names of the kinds of owners.
var kinds = map[string]loombridgev1.ScopeKind{
	"":      loombridgev1.ScopeKind_SCOPE_KIND_UNSPECIFIED,
	"agent": loombridgev1.ScopeKind_SCOPE_KIND_AGENT,
	"user":  loombridgev1.ScopeKind_SCOPE_KIND_USER,
	"space": loombridgev1.ScopeKind_SCOPE_KIND_SPACE,
}

// Options are what the command works with. All are required.
type Options struct {
	// Dial connects to the server; ctx then has what its calls carry.
	Dial func(ctx context.Context) (context.Context, *grpc.ClientConn, error)
	// Refuse is the error that says what is wrong with the value of a flag.
	Refuse func(flag, value, problem string) error
	Out    io.Writer
}

// Command is the command.
func Command(o Options) *cobra.Command {
	var kind string
	var asJSON bool
	ask := &loombridgev1.ListScopesRequest{PageSize: pageSize}
	command := &cobra.Command{Use: "scopes", Short: "List whose memory a server has", Long: help, Args: cobra.NoArgs}
	flags := command.Flags()
	flags.StringVar(&kind, "kind", "", "owners of one `kind` alone: agent, space or user")
	flags.StringVar(&ask.Prefix, "prefix", "", "what the ids begin with, as `text`")
	flags.StringVar(&ask.Tenant, "tenant", "", "`name` of whose they are; default: the token's. Another one needs a token that operates the server")
	flags.StringVar(&ask.AgentId, "agent", "", "list what the agent with this `id` was granted admin of as well")
	flags.BoolVar(&asJSON, "json", false, "write a line of JSON for each")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		known, ok := kinds[kind]
		if !ok {
			return o.Refuse("kind", kind, "is not agent, space or user")
		}
		ask.Kind = known
		ctx, conn, err := o.Dial(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return list(ctx, loombridgev1.NewAdminServiceClient(conn), ask, o.Out, asJSON)
	}
	return command
}

// list writes page after page.
func list(ctx context.Context, admin loombridgev1.AdminServiceClient, ask *loombridgev1.ListScopesRequest, out io.Writer, asJSON bool) error {
	for {
		got, err := admin.ListScopes(ctx, ask)
		if err != nil {
			return err
		}
		for scope := range slices.Values(got.GetScopes()) {
			if err := write(out, scope, asJSON); err != nil {
				return err
			}
		}
		if ask.PageToken = got.GetNextPageToken(); ask.PageToken == "" {
			return nil
		}
	}
}

func write(out io.Writer, scope *loombridgev1.MemoryScope, asJSON bool) error {
	if asJSON {
		text, err := protojson.MarshalOptions{}.Marshal(scope)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", text)
		return err
	}
	kind, id := "agent", scope.GetOwner().GetAgentId()
	switch owner := scope.GetOwner().GetOwner().(type) {
	case *loombridgev1.MemoryOwner_UserId:
		kind, id = "user", owner.UserId
	case *loombridgev1.MemoryOwner_SpaceId:
		kind, id = "space", owner.SpaceId
	}
	_, err := fmt.Fprintf(out, "%s %q: %d records, %d archived, %d bytes\n", kind, id, scope.GetRecords(), scope.GetArchived(), scope.GetBytes())
	return err
}
