package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// UpdateWorking changes what an agent is at in a session.
func (s *contextService) UpdateWorking(ctx context.Context, r *loombridgev1.UpdateWorkingRequest) (*loombridgev1.UpdateWorkingResponse, error) {
	scope, err := agentScope(ctx, r, validate.UpdateWorkingRequest)
	if err != nil {
		return nil, err
	}
	config, err := s.log.Config(ctx, scope, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	var w working.Working
	if r.Goal == nil && r.GetPlan() == nil && len(r.GetActivate()) == 0 && len(r.GetDeactivate()) == 0 {
		w, err = s.log.Working(ctx, scope, r.GetSessionId())
	} else {
		w, err = s.updateWorking(ctx, scope, r, config)
	}
	if err != nil {
		return nil, err
	}
	active := w.Skills(settings.FirstActive(config.Skills()))
	return &loombridgev1.UpdateWorkingResponse{Working: convert.Working(w, active)}, nil
}

func (s *contextService) updateWorking(ctx context.Context, scope kv.Scope, r *loombridgev1.UpdateWorkingRequest, config session.Config) (working.Working, error) {
	var known []string
	undeclared := func(name string) bool {
		return !slices.ContainsFunc(config.Skills(), func(s settings.Skill) bool { return s.Name == name })
	}
	if slices.ContainsFunc(r.GetActivate(), undeclared) || slices.ContainsFunc(r.GetDeactivate(), undeclared) {
		recorded, err := recall.SkillsOf(ctx, s.memory, scope)
		if err != nil {
			return working.Working{}, fmt.Errorf("read skills: %w", err)
		}
		for i := range recorded {
			known = append(known, recorded[i].Name)
		}
	}
	return s.log.UpdateWorking(ctx, scope, r.GetSessionId(), convert.WorkingChange(r), known, r.GetRequestId())
}
