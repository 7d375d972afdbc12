package dashboard

import (
	"cmp"
	"encoding/json"
	"net/http"

	"google.golang.org/grpc/metadata"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
	"github.com/loom-bridge/loom-bridge/server/web"
)

// What is emitted where a request does not say.
const (
	debugTopic  = "debug.event"
	debugSender = "dashboard"
)

// refuseEmit answers where no event may be emitted.
func refuseEmit(w http.ResponseWriter, r *http.Request) {
	web.Refuse(w, r, http.StatusForbidden, "POST /api/debug/emit", "is served where LOOM_DASHBOARD_DEBUG is true")
}

// emit emits an event for an agent, as far as the caller may act for it.
func (h *Handler) emit(r *http.Request, _ string) (any, error) {
	var asked struct {
		Topic   string          `json:"topic"`
		Sender  string          `json:"sender"`
		Payload json.RawMessage `json:"payload"`
	}
	if body := web.BodyOf(r); len(body) > 0 {
		if err := json.Unmarshal(body, &asked); err != nil {
			return nil, validate.Refuse("body", "is no object with topic, sender and payload: "+err.Error())
		}
	}
	event := &loombridgev1.EmitRequest{AgentId: cmp.Or(asked.Sender, debugSender), Topic: cmp.Or(asked.Topic, debugTopic)}
	if len(asked.Payload) > 0 {
		event.PayloadForm = &loombridgev1.EmitRequest_PayloadJson{PayloadJson: string(asked.Payload)}
	}
	ctx := metadata.NewOutgoingContext(r.Context(), metadata.MD{"authorization": r.Header.Values("Authorization")})
	emitted, err := loombridgev1.NewBridgeServiceClient(h.Calls).Emit(ctx, event)
	if err != nil {
		return nil, err
	}
	return struct {
		EventID string `json:"event_id"`
	}{emitted.GetEventId()}, nil
}
