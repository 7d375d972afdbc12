package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

const scopesCredentials = usersCredentials + `
[[credential]]
token = "root"
tenant = "acme"
agents = ["root"]
operates = true

[[credential]]
token = "other"
tenant = "umbrella"
agents = ["*"]
`

// scopesOf lists page after page, each of that size. Where one goes on must name nobody
// but the last of the page before.
func scopesOf(ctx context.Context, s *servertest.Server, r *loombridgev1.ListScopesRequest) (found []string, err error) {
	for last := ""; ; {
		got, err := s.Admin.ListScopes(ctx, r)
		if err != nil {
			return found, err
		}
		for _, scope := range got.GetScopes() {
			o := scope.GetOwner()
			last = o.GetAgentId() + o.GetUserId() + o.GetSpaceId()
			found = append(found, fmt.Sprint(o.GetAgentId(), strings.Repeat("@", len(o.GetUserId())), o.GetUserId(), strings.Repeat("#", len(o.GetSpaceId())), o.GetSpaceId(), " ", scope.GetRecords()))
		}
		if r.PageToken = got.GetNextPageToken(); r.PageToken == "" {
			return found, nil
		}
		name, err := base64.RawURLEncoding.DecodeString(r.PageToken[len("o1."):])
		if err == nil && string(name[1:]) != last {
			err = fmt.Errorf("behind %q a page goes on at %q", last, name)
		}
		if err != nil {
			return found, err
		}
	}
}

// Whose memory there is comes page by page, by kind and beginning, with the counts of each;
// tokens outlive a restart. Sessions of loom.v1 without a name and topics are no owners.
//
// Y20
func TestScopesAreListed(t *testing.T) {
	engine := memkv.New(nil)
	t.Cleanup(func() { must(t, engine.Close()) })
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	ctx := t.Context()
	mustCreate(t, s, "a1", "t")
	for i := range 5 {
		for j := range i + 1 {
			_, err := saveTo(ctx, s, fmt.Sprintf("a%d", i), memoryOf{}, fmt.Sprintf("note %d of the garden", j))
			must(t, err)
		}
	}
	for _, m := range []memoryOf{{user: "u"}, {space: "t"}} {
		_, err := saveTo(ctx, s, "a1", m, "the rose is red")
		must(t, err)
	}
	// Who has sessions alone is an owner, too; whose are both stands there once.
	for _, id := range []string{"b", "a2"} {
		_, err := s.Context.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{AgentId: id, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "Hello"}}})
		must(t, err)
	}
	want := []string{"a0 1", "a1 2", "a2 3", "a3 4", "a4 5", "b 0", "#t 1", "@u 1"}
	for size := range int32(9) {
		got, err := scopesOf(ctx, s, &loombridgev1.ListScopesRequest{PageSize: size})
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", size, got, want)
		}
	}
	for _, test := range []struct {
		ask  *loombridgev1.ListScopesRequest
		want []string
	}{
		{&loombridgev1.ListScopesRequest{Kind: loombridgev1.ScopeKind_SCOPE_KIND_USER}, want[7:]},
		{&loombridgev1.ListScopesRequest{Kind: loombridgev1.ScopeKind_SCOPE_KIND_SPACE, Prefix: "t"}, want[6:7]},
		{&loombridgev1.ListScopesRequest{Prefix: "a3"}, want[3:4]},
		{&loombridgev1.ListScopesRequest{Prefix: "a", PageSize: 2}, want[:5]},
		{&loombridgev1.ListScopesRequest{Prefix: "b"}, want[5:6]},
		{&loombridgev1.ListScopesRequest{Prefix: "c"}, nil},
		{&loombridgev1.ListScopesRequest{Tenant: "nobody"}, nil},
	} {
		got, err := scopesOf(ctx, s, test.ask)
		must(t, err)
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, want %q", test.ask, got, test.want)
		}
	}

	first, err := s.Admin.ListScopes(ctx, &loombridgev1.ListScopesRequest{PageSize: 3})
	must(t, err)
	again := servertest.Start(t, &servertest.Options{Engine: engine})
	_, err = saveTo(ctx, again, "a25", memoryOf{}, "saved meanwhile")
	must(t, err)
	rest, err := scopesOf(ctx, again, &loombridgev1.ListScopesRequest{PageToken: first.GetNextPageToken()})
	must(t, err)
	if want := slices.Concat([]string{"a25 1"}, want[3:]); !slices.Equal(rest, want) {
		t.Errorf("behind a token of before: %q, want %q", rest, want)
	}
	for _, bad := range []*loombridgev1.ListScopesRequest{
		{PageSize: 1001}, {PageSize: -1}, {PageToken: "o1.x"}, {PageToken: "x"}, {Prefix: strings.Repeat("x", 257)}, {Kind: 9}, {Tenant: "a\x00b"}, {AgentId: strings.Repeat("x", 257)},
	} {
		_, err := s.Admin.ListScopes(ctx, bad)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
}

// A caller sees what it may administer, and nothing of another tenant unless it runs the
// server.
//
// Y20
func TestScopesOfCallers(t *testing.T) {
	file := t.TempDir() + "/callers.toml"
	must(t, os.WriteFile(file, []byte(scopesCredentials), 0o600))
	credentials, err := auth.LoadCredentials(file)
	must(t, err)
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: credentials}})
	as := func(token string) context.Context { return withToken(t.Context(), "Bearer "+token) }
	for _, save := range []struct {
		token, agent, user string
	}{{"plain", "plain", ""}, {"app", "x", ""}, {"desk", "desk", ""}, {"desk", "desk", "team-1"}, {"app", "x", "ann"}, {"other", "y", ""}} {
		_, err := saveTo(as(save.token), s, save.agent, memoryOf{user: save.user}, "the rose is red")
		must(t, err)
	}
	_, err = s.Sharing.CreateSpace(as("plain"), &loombridgev1.CreateSpaceRequest{AgentId: "plain", SpaceId: "crew"})
	must(t, err)
	_, err = saveTo(as("plain"), s, "plain", memoryOf{space: "crew"}, "the rose is red")
	must(t, err)
	MustGrant(as("desk"), t, s, "desk", memoryOf{user: "team-1"}, "plain", loombridgev1.Access_ACCESS_ADMIN)
	MustGrant(as("plain"), t, s, "plain", memoryOf{space: "crew"}, "desk", loombridgev1.Access_ACCESS_WRITE)
	for _, test := range []struct {
		token, agent, tenant, want string
	}{
		{"plain", "", "", "plain 1"},
		{"plain", "plain", "", "plain 1, ####crew 1, @@@@@@team-1 1"},
		{"desk", "desk", "", "desk 1, @@@@@@team-1 1"},
		{"app", "", "", "desk 1, plain 1, x 1, ####crew 1, @@@ann 1, @@@@@@team-1 1"},
		{"narrow", "", "", "desk 1, plain 1, x 1, ####crew 1"},
		{"root", "", "", "desk 1, plain 1, x 1, ####crew 1, @@@ann 1, @@@@@@team-1 1"},
		{"root", "", "umbrella", "y 1"},
		{"other", "", "", "y 1"},
	} {
		got, err := scopesOf(as(test.token), s, &loombridgev1.ListScopesRequest{AgentId: test.agent, Tenant: test.tenant, PageSize: 1})
		must(t, err)
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s as %q of %q: %q, want %s", test.token, test.agent, test.tenant, got, test.want)
		}
	}
	_, err = s.Admin.ListScopes(as("app"), &loombridgev1.ListScopesRequest{Tenant: "umbrella"})
	MustFail(t, err, codes.PermissionDenied, "OPERATOR_REQUIRED")
	_, err = s.Admin.ListScopes(as("plain"), &loombridgev1.ListScopesRequest{AgentId: "desk"})
	MustFail(t, err, codes.PermissionDenied, "AGENT_NOT_OWNED")
	_, err = s.Admin.ListScopes(t.Context(), &loombridgev1.ListScopesRequest{})
	MustFail(t, err, codes.Unauthenticated, "UNAUTHENTICATED")
}
