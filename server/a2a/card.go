package a2a

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// What an agent says of itself for its card, as metadata when it attaches.
const (
	keyDescription = "description"
	keyVersion     = "version"
	keyInputModes  = "input_modes"
	keyOutputModes = "output_modes"
)

// plainModes are the media types of an agent that names none.
const plainModes = "text/plain,application/json"

// serves reports whether an agent listens to tasks.
func serves(a agents.Agent) bool { return a.Listens(a2a.Topic(a.ID, "any")) }

// agentOf is the agent that a request is for: the one it names, or the only one that serves
// tasks.
func (s *service) agentOf(tenant, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	found := s.Agents.Some(tenant, 2, serves)
	if len(found) != 1 {
		return "", validate.Refuse("tenant", "is required: it names the agent, as its card says; without it exactly one agent must serve tasks")
	}
	return found[0].ID, nil
}

// GetExtendedAgentCard returns the card of an agent that is attached. It says what the card over
// HTTP says.
func (s *service) GetExtendedAgentCard(ctx context.Context, r *a2av1.GetExtendedAgentCardRequest) (*a2av1.AgentCard, error) {
	if err := checkVersion(ctx); err != nil {
		return nil, err
	}
	tenant, err := auth.TenantOf(ctx)
	if err != nil {
		return nil, err
	}
	id, err := s.agentOf(tenant, r.GetTenant())
	if err != nil {
		return nil, err
	}
	agent, ok := s.Agents.Get(tenant, id)
	if !ok || !serves(agent) {
		return nil, status.Errorf(codes.NotFound, "no agent %s serves tasks", validate.Printable(id))
	}
	address := ""
	if names := metadata.ValueFromIncomingContext(ctx, ":authority"); len(names) > 0 {
		address = names[0]
	}
	return s.cardOf(agent, address), nil
}

// cardOf is the card of an agent. What the agent says of itself is taken as text.
func (s *service) cardOf(a agents.Agent, address string) *a2av1.AgentCard {
	said := a.Metadata
	card := &a2av1.AgentCard{
		Name: a.ID, Description: cmp.Or(said[keyDescription], "The agent "+a.ID+"."), Version: cmp.Or(said[keyVersion], "1"),
		SupportedInterfaces: []*a2av1.AgentInterface{{Url: address, ProtocolBinding: "GRPC", ProtocolVersion: protocolVersion, Tenant: a.ID}},
		Capabilities:        &a2av1.AgentCapabilities{Streaming: new(true), PushNotifications: new(false), ExtendedAgentCard: new(true)},
		DefaultInputModes:   modesOf(a, keyInputModes), DefaultOutputModes: modesOf(a, keyOutputModes),
	}
	for _, skill := range a.Capabilities {
		if !slices.ContainsFunc(a.Tools, func(t agents.ProvidedTool) bool { return t.Name == skill }) {
			card.Skills = append(card.GetSkills(), skillOf(skill, skill))
		}
	}
	if len(card.GetSkills()) == 0 {
		card.Skills = []*a2av1.AgentSkill{skillOf(a.ID, card.GetDescription())}
	}
	if s.Authenticated {
		const bearer = "bearer"
		card.SecuritySchemes = map[string]*a2av1.SecurityScheme{bearer: {Scheme: &a2av1.SecurityScheme_HttpAuthSecurityScheme{
			HttpAuthSecurityScheme: &a2av1.HTTPAuthSecurityScheme{Scheme: "Bearer"},
		}}}
		card.SecurityRequirements = []*a2av1.SecurityRequirement{{Schemes: map[string]*a2av1.StringList{bearer: {}}}}
	}
	return card
}

func skillOf(name, description string) *a2av1.AgentSkill {
	return &a2av1.AgentSkill{Id: name, Name: name, Description: description, Tags: []string{name}}
}

// modesOf are the media types that an agent names, separated by commas.
func modesOf(a agents.Agent, key string) []string {
	modes := strings.Split(cmp.Or(a.Metadata[key], plainModes), ",")
	for i := range modes {
		modes[i] = strings.TrimSpace(modes[i])
	}
	return modes
}

// takes reports whether an agent takes parts of a media type; a part without one is taken.
func takes(a agents.Agent, media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	kind, _, _ := strings.Cut(media, "/")
	return media == "" || slices.ContainsFunc(modesOf(a, keyInputModes), func(mode string) bool {
		return mode == "*/*" || strings.EqualFold(mode, media) || strings.EqualFold(mode, kind+"/*")
	})
}
