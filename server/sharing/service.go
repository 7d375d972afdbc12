package sharing

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// Service serves SharingService.
type Service struct {
	loombridgev1.UnimplementedSharingServiceServer
	Grants *grants.Store
	// MaxSendBytes bounds an answer.
	MaxSendBytes int
}

// owned is the scope of the memory that a request is about.
func owned(ctx context.Context, r OfMemory) (kv.Scope, error) {
	return auth.MemoryScope(ctx, r.GetAgentId(), r.GetUserId(), r.GetSpaceId())
}

// CreateSpace makes a space.
func (s *Service) CreateSpace(ctx context.Context, r *loombridgev1.CreateSpaceRequest) (*loombridgev1.Space, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	made, err := s.Grants.Create(ctx, scope.Tenant, r.GetSpaceId(), r.GetAgentId())
	if err != nil {
		return nil, err
	}
	return convert.Space(made), nil
}

// DeleteSpace deletes a space with its records.
func (s *Service) DeleteSpace(ctx context.Context, r *loombridgev1.DeleteSpaceRequest) (*loombridgev1.DeleteSpaceResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err == nil {
		err = s.Grants.Delete(ctx, scope.Tenant, r.GetSpaceId(), r.GetAgentId())
	}
	if err != nil {
		return nil, err
	}
	return &loombridgev1.DeleteSpaceResponse{}, nil
}

// ListSpaces lists the spaces to which an agent has access.
func (s *Service) ListSpaces(ctx context.Context, r *loombridgev1.ListSpacesRequest) (*loombridgev1.ListSpacesResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	found, err := s.Grants.Spaces(ctx, scope.Tenant, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	out, next := page.Cut(page.Spaces, found, r, s.MaxSendBytes, func(s grants.Space) string { return s.Name }, convert.Space)
	return &loombridgev1.ListSpacesResponse{Spaces: out, NextPageToken: next}, nil
}

// GrantAccess gives agents access.
func (s *Service) GrantAccess(ctx context.Context, r *loombridgev1.GrantAccessRequest) (*loombridgev1.Grant, error) {
	scope, err := owned(ctx, r)
	if err != nil {
		return nil, err
	}
	given, err := s.Grants.Grant(ctx, scope, r.GetAgentId(), r.GetGrantee(), grants.Level(r.GetAccess()))
	if err != nil {
		return nil, err
	}
	return convert.Grant(given), nil
}

// RevokeAccess takes a grant back.
func (s *Service) RevokeAccess(ctx context.Context, r *loombridgev1.RevokeAccessRequest) (*loombridgev1.RevokeAccessResponse, error) {
	scope, err := owned(ctx, r)
	if err == nil {
		err = s.Grants.Revoke(ctx, scope, r.GetAgentId(), r.GetGrantee())
	}
	if err != nil {
		return nil, err
	}
	return &loombridgev1.RevokeAccessResponse{}, nil
}

// ListGrants lists grants.
func (s *Service) ListGrants(ctx context.Context, r *loombridgev1.ListGrantsRequest) (*loombridgev1.ListGrantsResponse, error) {
	scope, err := owned(ctx, r)
	if err != nil {
		return nil, err
	}
	found, err := s.Grants.Grants(ctx, scope, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	out, next := page.Cut(page.Grants, found, r, s.MaxSendBytes, func(g grants.Grant) string { return g.Pattern }, convert.Grant)
	return &loombridgev1.ListGrantsResponse{Grants: out, NextPageToken: next}, nil
}
