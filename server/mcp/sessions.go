package mcp

import (
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

const (
	// maxSessions is how many sessions of older protocols may be open.
	maxSessions = 1024
	// sessionIdle is how long one stays open in which nothing is asked.
	sessionIdle = 30 * time.Minute
)

// sessions are the open sessions of older protocols: tenants and their agents share the
// room for them.
type sessions struct {
	server *sdk.Server
	places *share.Pool
	mu     sync.Mutex
	open   map[string]*share.Holding // by the session's id; guarded by mu
}

func newSessions(server *sdk.Server, oneTenant bool) *sessions {
	return &sessions{
		server: server, open: make(map[string]*share.Holding),
		places: share.New(share.Options{
			Name: "sessions of the Model Context Protocol", Total: maxSessions, OneTenant: oneTenant,
		}),
	}
}

// opening lets a request through that opens a session, if its owner may have one more.
func (s *sessions) opening(w http.ResponseWriter, r *http.Request, owner share.Owner, next http.Handler) {
	s.closed()
	place, err := s.places.TryTake(owner, 1)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer func() {
		id := w.Header().Get("Mcp-Session-Id")
		if id == "" {
			place.Leave() // none was opened
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[id] = place
	}()
	next.ServeHTTP(w, r)
}

// closed gives back the places of sessions that have ended.
func (s *sessions) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := make(map[string]bool, len(s.open))
	for session := range s.server.Sessions() {
		live[session.ID()] = true
	}
	for id, place := range s.open {
		if !live[id] {
			place.Leave()
			delete(s.open, id)
		}
	}
}
