package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/sharing"
)

type adminService struct {
	loombridgev1.UnimplementedAdminServiceServer
	about          About
	started        time.Time
	authentication bool
	limits         Limits
	tools          *tools.Catalogue
	store          *kv.Health
	scrubbed       func() time.Time
	sandbox        sandbox.Confinement
	backups        *backup.Keeper
	outcomes       *observe.Outcomes
	bridges        *registry.Registry
	memory         Memory
	grants         *grants.Store
	places         *places.Places
	redact         *redact.Redactor
	retention      *retention.Sweeper
}

// errNoBackups: the server has no folder for backups.
var errNoBackups = errors.New("server: backups are off; start it with --backup-dir, or back up PostgreSQL by its own means")

// GetStatus says what the server is and how it stores, and who has a workspace.
func (s *adminService) GetStatus(ctx context.Context, r *loombridgev1.GetStatusRequest) (*loombridgev1.GetStatusResponse, error) {
	if _, err := auth.TenantOf(ctx); err != nil {
		return nil, err
	}
	workspace, err := s.workspaceOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return &loombridgev1.GetStatusResponse{
		Version:        s.about.Version,
		StartTime:      timestamppb.New(s.started),
		Durability:     s.about.Durability,
		StoreFormat:    convert.Int32(s.about.StoreFormat),
		Authentication: s.authentication,
		Tools:          convert.Int32(s.tools.CountOwn()),
		Store:          s.storeStatus(),
		Sandbox:        convert.Sandbox(s.sandbox),
		Backups:        s.backupStatus(),
		ToolCalls:      s.outcomes.All(),
		Bridges:        convert.Bridges(s.bridges),
		Redacted:       s.redact.Totals(),
		Retention:      convert.Retention(s.retention.Stats()),
		Workspace:      workspace,
	}, nil
}

// storeStatus says how the store is. Whose data is damaged is for the log alone.
func (s *adminService) storeStatus() *loombridgev1.StoreStatus {
	condition, _ := s.store.Condition()
	status := &loombridgev1.StoreStatus{}
	if condition.Failed != nil {
		status.Problem = publicText(condition.Failed)
	}
	for _, ks := range append(kv.Keyspaces(), kv.WholeStore) {
		if err := condition.Damaged[ks]; err != nil {
			status.Damage = append(status.Damage, publicDamage(ks, err))
		}
	}
	if at := s.scrubbed(); !at.IsZero() {
		status.ScrubTime = timestamppb.New(at)
	}
	return status
}

// publicDamage is what may be said outside the server of damage in a keyspace.
func publicDamage(ks kv.Keyspace, err error) string {
	if damage, ok := errors.AsType[*kv.DamageError](err); ok {
		return fmt.Sprintf("%s: %s %s", ks, damage.File, damage.Problem)
	}
	return ks.String() + ": something that is stored can't be read; the server's log says what"
}

func (s *adminService) backupStatus() *loombridgev1.BackupStatus {
	if s.backups == nil {
		return nil
	}
	return convert.BackupStatus(s.backups.Report())
}

// mayBackUp refuses callers who do not run the server, and servers without a folder.
func (s *adminService) mayBackUp(ctx context.Context) error {
	if err := auth.Operator(ctx); err != nil {
		return err
	}
	if s.backups == nil {
		return errNoBackups
	}
	return nil
}

// workspaceOf is the server that has the workspace of an agent; nil where none is asked for,
// or has it yet.
func (s *adminService) workspaceOf(ctx context.Context, r *loombridgev1.GetStatusRequest) (*loombridgev1.BridgeStatus, error) {
	if r.GetAgentId() == "" {
		return nil, nil
	}
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	owner, found, err := s.places.Of(ctx, scope)
	if err != nil || !found {
		return nil, err
	}
	return convert.Workspace(owner), nil
}

// MoveWorkspace gives the workspace of an agent to another server.
func (s *adminService) MoveWorkspace(ctx context.Context, r *loombridgev1.MoveWorkspaceRequest) (*loombridgev1.BridgeStatus, error) {
	if err := auth.Operator(ctx); err != nil {
		return nil, err
	}
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	_, after, err := s.places.Move(ctx, scope, r.GetServer())
	if err != nil {
		return nil, err
	}
	return convert.Workspace(after), nil
}

// progressEvery is the time between two messages about how far something is.
const progressEvery = 200 * time.Millisecond

// CreateBackup makes a backup, and says how far it is.
func (s *adminService) CreateBackup(r *loombridgev1.CreateBackupRequest, stream grpc.ServerStreamingServer[loombridgev1.CreateBackupResponse]) error {
	if err := s.mayBackUp(stream.Context()); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(stream.Context())
	defer stop(nil)
	var reported time.Time
	made, err := s.backups.Create(ctx, r.GetFull(), func(done, total int64) {
		if time.Since(reported) < progressEvery {
			return
		}
		reported = time.Now()
		if err := stream.Send(&loombridgev1.CreateBackupResponse{BytesDone: done, BytesTotal: total}); err != nil {
			stop(err)
		}
	})
	if err != nil {
		return err
	}
	return stream.Send(&loombridgev1.CreateBackupResponse{BytesDone: made.Bytes, BytesTotal: made.Bytes, Backup: convert.Backup(made)})
}

// ListBackups returns the backups.
func (s *adminService) ListBackups(ctx context.Context, r *loombridgev1.ListBackupsRequest) (*loombridgev1.ListBackupsResponse, error) {
	if err := s.mayBackUp(ctx); err != nil {
		return nil, err
	}
	all, err := s.backups.Folder().List()
	if err != nil && len(all) == 0 {
		return nil, err
	}
	out, next := page.Cut(page.Backups, all, r, s.limits.MaxSendBytes, func(b backup.Backup) string { return b.Name }, convert.Backup)
	return &loombridgev1.ListBackupsResponse{Backups: out, NextPageToken: next}, nil
}

// ListScopes returns a page of the owners whose memory the caller administers.
func (s *adminService) ListScopes(ctx context.Context, r *loombridgev1.ListScopesRequest) (*loombridgev1.ListScopesResponse, error) {
	tenant, err := auth.TenantOf(ctx)
	if err != nil {
		return nil, err
	}
	if named := r.GetTenant(); named != "" && named != tenant {
		if err := auth.Operator(ctx); err != nil {
			return nil, err
		}
		tenant = named
	}
	if r.GetAgentId() != "" {
		if _, err := auth.AgentScope(ctx, r.GetAgentId()); err != nil {
			return nil, err
		}
	}
	after, _ := page.ParseScopeToken(r.GetPageToken()) // checked before
	found, next, err := s.memory.Owners(ctx, memory.Owners{
		Tenant: tenant, Also: []kv.Keyspace{kv.Log}, Kind: convert.OwnerKind(r.GetKind()), Prefix: r.GetPrefix(), After: kv.Scope{Tenant: tenant, Kind: after.Kind, Owner: after.Owner},
		Size: int(r.GetPageSize()), May: sharing.Administers(ctx, s.grants, r.GetAgentId()),
	})
	if err != nil {
		return nil, err
	}
	return &loombridgev1.ListScopesResponse{Scopes: convert.Scopes(found), NextPageToken: page.ScopeToken(next)}, nil
}
