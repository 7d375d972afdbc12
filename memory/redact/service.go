package redact

import (
	"slices"
	"strings"
)

// service is a token of a service that shows what it is: a prefix, and so many more bytes.
type service struct {
	prefix      string
	least, most int // most is zero for any number
	class       func(byte) bool
}

func hexadecimal(b byte) bool  { return isDigit(b) || b >= 'a' && b <= 'f' }
func dotted(b byte) bool       { return dashed(b) || b == '.' }
func lowerOrDigit(b byte) bool { return isLower(b) || isDigit(b) }
func upperOrDigit(b byte) bool { return isUpper(b) || isDigit(b) }
func slashed(b byte) bool      { return dashed(b) || b == '/' }

// services are the token formats without a separate pattern, as in the rules of gitleaks and
// trufflehog.
var services = []service{
	{"sq0atp-", 22, 0, dashed},
	{"sq0csp-", 40, 0, dashed}, // Square
	{"shpat_", 32, 0, hexadecimal},
	{"shpca_", 32, 0, hexadecimal},
	{"shppa_", 32, 0, hexadecimal},
	{"shpss_", 32, 0, hexadecimal}, // Shopify
	{"dapi", 32, 34, func(b byte) bool { return hexadecimal(b) || b == '-' }}, // Databricks
	{"lin_api_", 32, 0, word},
	{"ntn_", 40, 0, word},
	{"secret_", 43, 43, alphanumeric},
	{"figd_", 32, 0, dashed}, // Linear, Notion, Figma
	{"PMAK-", 40, 0, dashed},
	{"dp.pt.", 40, 0, alphanumeric},
	{"dp.st.", 40, 0, dotted},
	{"glc_", 32, 0, base64Text},
	{"glsa_", 32, 0, word}, // Postman, Doppler, Grafana
	{"NRAK-", 27, 27, upperOrDigit},
	{"NRJS-", 19, 19, hexadecimal},
	{"sntrys_", 60, 0, base64Text},
	{"sntryu_", 64, 64, hexadecimal}, // New Relic, Sentry
	{"pscale_tkn_", 32, 0, dotted},
	{"pscale_pw_", 32, 0, dotted},
	{"pscale_oauth_", 32, 0, dotted}, // PlanetScale
	{"sbp_", 40, 0, hexadecimal},
	{"fo1_", 43, 0, dashed},
	{"fm2_", 40, 0, base64Text},
	{"ATATT3", 60, 0, base64Text},
	{"ATCTT3", 60, 0, base64Text},
	{"ATBB", 32, 32, alphanumeric}, // Supabase, Fly, Atlassian
	{"HRKU-", 36, 0, dashed},
	{"AGE-SECRET-KEY-1", 58, 58, upperOrDigit},
	{"r8_", 37, 40, alphanumeric},
	{"gsk_", 40, 0, alphanumeric},
	{"xai-", 60, 0, alphanumeric}, // Heroku, age, Replicate, Groq, xAI
	{"pplx-", 40, 0, alphanumeric},
	{"tvly-", 20, 0, dashed},
	{"lsv2_", 40, 0, word},
	{"fw_", 22, 24, alphanumeric},
	{"nvapi-", 60, 0, dashed}, // Perplexity, Tavily, LangSmith, Fireworks, NVIDIA
	{"ya29.", 30, 0, dashed},
	{"GOCSPX-", 24, 0, dashed},
	{"1//0", 40, 0, dashed}, // Google
	{"rubygems_", 48, 48, hexadecimal},
	{"oy2", 43, 43, lowerOrDigit},
	{"dckr_pat_", 20, 0, dashed},
	{"dckr_oat_", 20, 0, dashed},
	{"pul-", 40, 40, hexadecimal}, // RubyGems, NuGet, Docker, Pulumi
	{"CCIPAT_", 32, 0, word},
	{"bkua_", 40, 40, hexadecimal},
	{"dt0c01.", 64, 0, dotted},
	{"aio_", 28, 28, alphanumeric},
	{"cio", 32, 32, alphanumeric}, // CircleCI, Buildkite, Dynatrace, Adafruit, crates.io
	{"EZAK", 54, 54, alphanumeric},
	{"EZTK", 54, 54, alphanumeric},
	{"FLWSECK-", 32, 0, dashed},
	{"FLWSECK_TEST-", 12, 0, dashed},
	{"fio-u-", 64, 64, base64Text}, // EasyPost, Flutterwave, Frame.io
	{"pnu_", 36, 36, alphanumeric},
	{"rdme_", 70, 70, lowerOrDigit},
	{"xkeysib-", 64, 0, dashed},
	{"xsmtpsib-", 64, 0, dashed},
	{"shippo_live_", 40, 40, hexadecimal},
	{"shippo_test_", 40, 40, hexadecimal}, // Prefect, ReadMe, Brevo, Shippo
	{"tskey-", 20, 0, dashed},
	{"tfp_", 40, 0, dotted},
	{"CLOJARS_", 60, 60, lowerOrDigit},
	{"CFPAT-", 40, 0, dashed},
	{"AKCp", 60, 0, alphanumeric},
	{"duffel_live_", 40, 0, dashed},
	{"duffel_test_", 40, 0, dashed}, // Tailscale, Typeform, Clojars, Contentful, JFrog, Duffel
	{"LTAI", 16, 26, alphanumeric},
	{"AQVN", 35, 38, dashed},
	{"ops_eyJ", 100, 0, base64Text},
	{"sha256~", 43, 43, dashed},
	{"ico-", 32, 32, alphanumeric}, // Alibaba, Yandex, 1Password, OpenShift, Infracost
	{"phc_", 40, 0, alphanumeric},
	{"phx_", 40, 0, alphanumeric},
	{"sk_", 50, 50, hexadecimal},
	{"re_", 30, 36, word},
	{"whsec_", 24, 0, base64Text}, // PostHog, ElevenLabs, Resend
	{"glrt-", 20, 0, dashed},
	{"gldt-", 20, 0, dashed},
	{"glptt-", 20, 0, dashed},
	{"glcbt-", 20, 0, dashed},
	{"glft-", 20, 0, dashed},
	{"glimt-", 20, 0, dashed},
	{"glagent-", 20, 0, dashed},
	{"glsoat-", 20, 0, dashed},
	{"gloas-", 20, 0, dashed}, // GitLab
	{"v1.0-", 100, 0, dashed},
	{"API-", 26, 32, upperOrDigit},
	{"key-", 32, 32, hexadecimal},
	{"pubkey-", 32, 32, hexadecimal}, // Cloudflare, Octopus, Mailgun
	{"discord.com/api/webhooks/", 60, 0, slashed},
	{"discordapp.com/api/webhooks/", 60, 0, slashed},
	{"webhook.office.com/webhookb2/", 60, 0, func(b byte) bool { return slashed(b) || b == '@' }},
	{"AccountKey=", 80, 0, base64Text},
	{"SharedAccessKey=", 40, 0, base64Text}, // Azure
}

// serviceToken is a token of one of the services.
var serviceToken = func() matcher {
	by := map[string][]matcher{}
	for _, s := range services {
		by[s.prefix[:3]] = append(by[s.prefix[:3]], s.match)
	}
	return func(r *Redactor, text string, i int) (int, int, bool) {
		if i+3 > len(text) {
			return 0, 0, false
		}
		for _, m := range by[text[i:i+3]] {
			if start, end, ok := m(r, text, i); ok {
				return start, end, true
			}
		}
		return 0, 0, false
	}
}()

func serviceBegins() []string {
	var all []string
	for _, s := range services {
		if begin := s.prefix[:3]; !slices.Contains(all, begin) {
			all = append(all, begin)
		}
	}
	return all
}

// match takes a token whose length is right and that looks random: the prefixes are short, and
// words begin with some.
func (s service) match(r *Redactor, text string, i int) (int, int, bool) {
	start, end, ok := prefixed(s.prefix, s.least, s.class)(r, text, i)
	if !ok {
		return 0, 0, false
	}
	tail := text[start+len(s.prefix) : end]
	if s.most > 0 && len(tail) > s.most || !strings.ContainsAny(tail, "0123456789") && !r.eager {
		return 0, 0, false
	}
	return start, end, true
}

// sendgridKey is SG., an id and a key.
func sendgridKey(r *Redactor, text string, i int) (int, int, bool) {
	start, end, ok := prefixed("SG.", 60, dotted)(r, text, i)
	for ok && text[end-1] == '.' { // the end of a sentence
		end--
	}
	if !ok || end-start < len("SG.")+60 || strings.Count(text[start:end], ".") != 2 {
		return 0, 0, false
	}
	return start, end, true
}

// twilioKey is SK, or AC for an account, and 32 digits in hexadecimal.
func twilioKey(_ *Redactor, text string, i int) (int, int, bool) {
	if !begins(text, i) || text[i:i+2] != "SK" && text[i:i+2] != "AC" {
		return 0, 0, false
	}
	end := run(text, i+2, 33, hexadecimal)
	return i, end, end-i-2 == 32 && (end == len(text) || !word(text[end]))
}

// telegramToken is the number of a bot, a colon and 35 more, shown by what stands behind the
// colon.
func telegramToken(_ *Redactor, text string, i int) (int, int, bool) {
	if !strings.HasPrefix(text[i:], ":AA") {
		return 0, 0, false
	}
	start := i
	for start > 0 && i-start < 11 && isDigit(text[start-1]) {
		start--
	}
	end := run(text, i+1, 36, dashed)
	return start, end, i-start >= 8 && i-start <= 10 && end-i-1 == 35
}

func twilioBegins() []string {
	var all []string
	for _, digit := range "0123456789abcdef" {
		all = append(all, "SK"+string(digit), "AC"+string(digit))
	}
	return all
}
