// Package nearby finds a server of embeddings that listens on this machine: Ollama, or Text
// Embeddings Inference (TEI).
//
// Caveats: only loopback addresses are asked, each for at most [Timeout], and nothing but
// which models it has. A model is taken from Ollama only if its name or its family says that
// it makes embeddings.
package nearby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// Timeout bounds asking one address.
	Timeout = 2 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 1 << 20
)

// Hosts are the addresses that are asked by default: Ollama's, and two of TEI's.
const Hosts = "127.0.0.1:11434,127.0.0.1:8080,127.0.0.1:3000"

// Server is one that was found.
type Server struct {
	// BaseURL is what /embeddings is added to.
	BaseURL string
	// Model is its model.
	Model string
}

// names are parts of the names of models that make embeddings.
var names = []string{"embed", "bge-", "minilm", "e5-", "gte-"}

// Check refuses a list of addresses unless all are on loopback.
func Check(hosts string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			return err
		}
		if ip := net.ParseIP(name); ip == nil || !ip.IsLoopback() {
			return fmt.Errorf("%q is not a loopback address with a port, such as 127.0.0.1:11434", host)
		}
	}
	return nil
}

// Find returns the first server in a list of addresses that has a model for embeddings.
func Find(ctx context.Context, hosts string) (Server, bool) {
	if Check(hosts) != nil {
		return Server{}, false
	}
	transport := &http.Transport{DisableKeepAlives: true} // and no proxy
	client := &http.Client{Timeout: Timeout, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for host := range strings.SplitSeq(hosts, ",") {
		for _, ask := range []func(context.Context, *http.Client, string) string{ollama, tei} {
			if model := ask(ctx, client, host); model != "" {
				return Server{BaseURL: "http://" + host + "/v1", Model: model}, true
			}
		}
	}
	return Server{}, false
}

func ollama(ctx context.Context, client *http.Client, host string) string {
	var answer struct {
		Models []struct {
			Name    string
			Details struct{ Family string }
		}
	}
	if get(ctx, client, host, "/api/tags", &answer) != nil {
		return ""
	}
	for _, m := range answer.Models {
		if strings.Contains(m.Details.Family, "bert") {
			return m.Name
		}
		for _, part := range names {
			if strings.Contains(strings.ToLower(m.Name), part) {
				return m.Name
			}
		}
	}
	return ""
}

func tei(ctx context.Context, client *http.Client, host string) string {
	var answer struct {
		ModelID   string                     `json:"model_id"`
		ModelType map[string]json.RawMessage `json:"model_type"`
	}
	if get(ctx, client, host, "/info", &answer) != nil || answer.ModelType["embedding"] == nil {
		return ""
	}
	return answer.ModelID
}

func get(ctx context.Context, client *http.Client, host, path string, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(into)
}
