package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/native/web"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// Web is what tools reach on networks.
type Web struct {
	// Hosts are the hosts of web:fetch and browser:navigate.
	Hosts []string
	// CA is a file of further certificates; empty for none.
	CA string

	Search web.Search
	// SearchProxy is a URL, of a variable such as HTTPS_PROXY; empty for none.
	SearchProxy string
	// Weather is where weather:get asks. No setting: the zero value is Open-Meteo.
	Weather web.Weather
	Model   web.Model
}

// maxTemperature is the largest that models take.
const maxTemperature = 2

func (w *Web) settings() []setting {
	s, m := &w.Search, &w.Model
	return []setting{
		{
			"web-hosts", checkedList(&w.Hosts, "host,...", checkHosts), "*",
			"of pages: a.com, *.a.com, a.com=127.0.0.1:8080; *: all public ones, none: none",
		},
		{"search-engine", choice(&s.Engine, web.EngineBrave, web.EngineSearXNG, web.EngineTemplate), web.EngineBrave, "search engine of web:search"},
		{"search-url", optional(checked(&s.URL, "url", checkURL)), nil, "its address; of a template with {query} and {limit}; none: Brave's"},
		{"search-key", anyText(&s.Key, "key"), nil, "its API key; better set in the environment"},
		{"llm-url", checked(&m.BaseURL, "url", checkURL), web.DefaultModelURL, "server of llm:generate, OpenAI-compatible"},
		{"llm-model", required(&m.Name, "name"), web.DefaultModel, "model to use there"},
		{"llm-key", anyText(&m.Key, "key"), nil, "its API key; better set in the environment"},
		{"egress-ca", anyText(&w.CA, "file"), nil, "PEM file of additional authorities to trust hosts by"},
	}
}

// temperature is a number from 0 to maxTemperature.
func temperature(to *float64) scalar[float64] {
	return scalar[float64]{
		to: to, name: "number",
		parse: func(text string) (float64, error) {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil || !(value >= 0 && value <= maxTemperature) {
				return 0, errors.New("is not a number from 0 to 2")
			}
			if value == 0 {
				value = -1 // the package below takes 0 for its default
			}
			return value, nil
		},
		print: func(value float64) string { return strconv.FormatFloat(max(value, 0), 'g', -1, 64) },
	}
}

// checkedList is a list that check takes.
func checkedList(to *[]string, unit string, check func(values []string) error) scalar[[]string] {
	s := list(to, unit)
	parse := s.parse
	s.parse = func(text string) ([]string, error) {
		values, err := parse(text)
		if err != nil {
			return nil, err
		}
		return values, check(values)
	}
	return s
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("is no URL of http or https")
	}
	return nil
}

func checkHosts(hosts []string) error { return hostPolicy(hosts).Check() }

// noHost is how an empty list of hosts is written.
const noHost = "none"

// hostPolicy is what a list of hosts allows. Each is a host, with a port or without, and
// behind a = the address to connect to.
func hostPolicy(hosts []string) egress.Policy {
	p := egress.Policy{Name: "web-hosts"}
	for _, item := range hosts {
		if item == "*" {
			p.Open = true
			continue
		}
		if item == noHost {
			continue
		}
		host, address, _ := strings.Cut(item, "=")
		r := egress.Rule{Host: host, Address: address}
		if at := strings.LastIndexByte(host, ':'); at > 0 && !strings.HasSuffix(host, "]") && strings.Count(host, ":") == 1 {
			if port, err := strconv.Atoi(host[at+1:]); err == nil {
				r.Host, r.Ports = host[:at], []int{port}
			}
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// options are the tools that ask on networks, as configured.
func (w Web) options() (web.Options, error) {
	o := web.Options{Hosts: hostPolicy(w.Hosts), Search: w.Search, Weather: w.Weather, Model: w.Model}
	if w.SearchProxy != "" {
		via, err := url.Parse(w.SearchProxy)
		if err != nil {
			return o, errors.New("the proxy of the environment is no URL")
		}
		o.Search.Via = via
	}
	return o, nil
}

// checkWeb checks what settings of the web name.
func (c Config) checkWeb() error {
	s := c.Web.Search
	switch {
	case s.Engine == web.EngineTemplate && !strings.Contains(s.URL, "{query}"):
		return &ConfigError{"search-url", s.URL, "has no {query}, which a template needs"}
	case s.Engine == web.EngineSearXNG && s.URL == "":
		return &ConfigError{"search-url", s.URL, "is needed with --search-engine searxng"}
	}
	if _, err := c.Web.roots(); err != nil {
		return &ConfigError{"egress-ca", c.Web.CA, err.Error()}
	}
	return nil
}

// roots are the further certificates.
func (w Web) roots() ([]byte, error) {
	if w.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(w.CA)
	if err == nil && !strings.Contains(string(pem), "BEGIN CERTIFICATE") {
		err = errors.New("has no certificate in PEM")
	}
	return pem, err
}

// egress is how tools reach networks, as configured.
func (w Web) egress(oneTenant bool, getenv func(string) string) egress.Options {
	roots, _ := w.roots() // Validate has read them
	return egress.Options{
		ExtraRoots: roots,
		Secret:     func(from string) (string, error) { return secretFrom(from, getenv) },
		Pool:       share.New(share.Options{Name: "connections of tools to hosts", Total: egress.DefaultMaxConnections, OneTenant: oneTenant}),
	}
}

// maxSecretFile bounds a file with a secret.
const maxSecretFile = 64 << 10

// secretFrom reads a secret from env:NAME or file:/path. The end of a file's last line is not
// part of it.
func secretFrom(from string, getenv func(string) string) (string, error) {
	kind, place, _ := strings.Cut(from, ":")
	if kind == "env" {
		if value := getenv(place); value != "" {
			return value, nil
		}
		return "", errors.New("the server has no variable " + place)
	}
	file, err := os.Open(place)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSecretFile))
	return strings.TrimRight(string(content), "\r\n"), err
}

// loomNames are the variables of loom.v1's core by the setting that has their value.
var loomNames = map[string][]string{
	"search-key": {"BRAVE_API_KEY"},
	"llm-url":    {"VLLM_BASE_URL"},
	"llm-model":  {"VLLM_MODEL"},
	"llm-key":    {"VLLM_API_KEY"},
}

// proxyNames are the variables that name a proxy, the strongest first.
var proxyNames = []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"}

// readLoom takes what variables of loom.v1's core say and no setting does.
func (w *Web) readLoom(getenv func(string) string) error {
	for _, name := range slices.Backward(proxyNames) {
		if value := getenv(name); checkURL(value) == nil { // it is for other programs, too
			w.SearchProxy = value
		}
	}
	milliseconds := getenv("REQUEST_TIMEOUT_MS")
	if _, err := strconv.Atoi(milliseconds); err == nil {
		milliseconds += "ms"
	}
	for _, v := range []struct {
		name, value string
		to          field
	}{
		{"VLLM_TEMPERATURE", getenv("VLLM_TEMPERATURE"), temperature(&w.Model.Temperature)},
		{"REQUEST_TIMEOUT_MS", milliseconds, positive(&w.Model.Timeout)},
	} {
		if v.value == "" {
			continue
		}
		if err := v.to.Set(v.value); err != nil {
			return fmt.Errorf("%s %q: %w", v.name, v.value, err)
		}
	}
	return nil
}

// leads reports whether a variable says where requests go. Agents must not choose that by a
// file that they can write: keys go there.
func leads(name string) bool {
	return slices.Contains(proxyNames, name) || slices.Contains(loomNames["llm-url"], name)
}
