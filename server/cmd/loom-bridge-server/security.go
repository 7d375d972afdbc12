package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// security reads the credentials and the TLS settings; nil credentials admit every caller,
// nil TLS means plain text.
func security(config Config) (*auth.Credentials, *auth.TLS, error) {
	var credentials *auth.Credentials
	var transport *auth.TLS
	var err error
	if config.Credentials != "" {
		if credentials, err = auth.LoadCredentials(config.Credentials); err != nil {
			return nil, nil, fmt.Errorf("--credentials (%s): %w", envName("credentials"), err)
		}
	}
	if config.TLSCert != "" {
		if transport, err = auth.LoadTLS(config.TLSCert, config.TLSKey, config.TLSClientCA); err != nil {
			return nil, nil, fmt.Errorf("--tls-cert, --tls-key, --tls-client-ca: %w", err)
		}
	}
	return credentials, transport, nil
}

// secrets are the keys and passwords among the settings.
func (c Config) secrets() *secret.Set {
	s := new(secret.Set)
	s.Put("", "secrets of the settings", c.secretValues())
	return s
}

// secretValues are the secrets by what has them.
func (c Config) secretValues() map[string]string {
	return map[string]string{
		"search-key": c.Web.Search.Key, "llm-key": c.Web.Model.Key, "embedder-key": c.Embedder.APIKey, "proxy": c.Web.SearchProxy, "store": c.Store.Password(),
		"knowledge-endpoint": c.KnowledgeEndpoint,
	}
}

// reloadOnHangup reads credentials and certificates again whenever the process gets
// SIGHUP. A file that can't be used changes nothing but the log. Without either
// SIGHUP stays what it is by default: the end of the process. The returned function
// ends it.
func reloadOnHangup(credentials *auth.Credentials, transport *auth.TLS, logger *slog.Logger) (stop func() error) {
	if credentials == nil && transport == nil {
		return func() error { return nil }
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range hangups {
			reload(credentials, transport, logger)
		}
	}()
	return func() error {
		signal.Stop(hangups)
		close(hangups)
		<-ended
		return nil
	}
}

func reload(credentials *auth.Credentials, transport *auth.TLS, logger *slog.Logger) {
	if credentials != nil {
		if err := credentials.Reload(); err != nil {
			logger.Error("the credentials stay as they were: the file can't be used", "error", err)
		} else {
			logger.Info("credentials were read again", "callers", credentials.Len())
		}
	}
	if transport != nil {
		if err := transport.Reload(); err != nil {
			logger.Error("the certificates stay as they were: a file can't be used", "error", err)
		} else {
			logger.Info("certificates were read again")
		}
	}
}
