package search

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

// groups are words that mean about the same when somebody looks for a tool. A word may
// stand in several.
var groups = []string{
	// What tools do.
	"add append insert put create new make",
	"create open start new make generate",
	"delete remove erase drop purge flush clear trash",
	"get read fetch show view retrieve see open load download",
	"list show enumerate all which",
	"find search look lookup query discover",
	"update edit modify change set correct adjust",
	"send post write tell notify message deliver",
	"save store write keep record persist commit",
	"record log note track worklog",
	"run execute start launch trigger invoke",
	"stop end kill terminate cancel halt pause",
	"undo revert rollback back restore previous last",
	"move transfer transition shift",
	"copy duplicate clone fork",
	"merge join combine unite concatenate",
	"arrange schedule plan book setup create",
	"grab fetch get download",
	"cut trim crop clip shorten",
	"check verify test validate inspect",
	"watch monitor observe track",
	"sign register enroll subscribe",
	"upload attach import send",
	"ring phone call dial",
	"compress zip archive unpack extract decompress",
	"enable turn on activate",
	"disable turn off deactivate",
	"see read access view permission",
	"convert transform exchange change",
	"share grant give invite",
	"answer reply respond",
	"accept approve acknowledge confirm yes",
	"decline reject refuse deny no respond",
	"press click tap push",
	"go navigate visit open browse",
	"extract scrape parse get",
	"preview plan dry",
	"scale resize replicas copies instances",
	"compute calculate evaluate",
	"describe explain details",
	"why explain cause reason",
	"fail failed failure error broken crash crashed",
	"slow performance plan",
	"buy purchase pay order",
	"refund reimburse money back",
	"spend spent cost price expense bill",
	"print log logs output",
	"install deploy release",
	"draw paint generate create picture image",
	"count sum aggregate total number group",
	"throw away trash delete discard",
	"call off cancel delete",
	"turn convert export make",
	"publish release live deploy online",
	"boot start launch",
	"prepare draft compose",
	"like similar same",
	"block forbid prevent unschedulable cordon disable",
	"switch checkout change",
	"fix repair resolve solve",
	"rename name title label",
	"sort order rank",
	"read recognize view get",
	"measure length size height elevation",
	"subscribe follow watch",
	// What they do it to.
	"agenda calendar schedule diary event",
	"doc document drive google",
	"popup dialog alert prompt",
	"http network request call fetch",
	"history recent lately past log",
	"machine node host computer",
	"workload pod scheduling schedulable container deployment",
	"french german spanish language translate",
	"people attendees users person",
	"dns point domain ip",
	"holiday trip travel flight hotel",
	"patch change diff pull",
	"exception error stacktrace trace bug",
	"letter scan document",
	"production service incident outage",
	"phone mobile number sms",
	"office word docx powerpoint excel",
	"archive zip tar",
	"note notes vault notebook",
	"knowledge fact entity graph relation",
	"budget money balance account",
	"health medical biomedical medicine",
	"air pollution quality smog",
	"height altitude elevation mountain",
	"picture image photo screenshot",
	"sound audio voice speech recording recorded memo",
	"text message sms",
	"mail email gmail message inbox",
	"meeting event appointment calendar",
	"available free busy slot",
	"bug issue ticket defect problem",
	"folder directory",
	"file document",
	"spreadsheet sheet excel",
	"row line record",
	"column field",
	"presentation slides slide powerpoint",
	"page site website web url link",
	"link url address",
	"code source",
	"pipeline workflow ci build job",
	"branch main trunk",
	"cluster kubernetes pod container",
	"server host machine instance vm",
	"cloud aws azure",
	"function lambda",
	"infrastructure terraform",
	"database sql table",
	"cache cached",
	"expire expiry expires temporary ttl",
	"queue message",
	"alert incident alarm page",
	"customer client buyer contact",
	"stock inventory quantity available",
	"plan subscription",
	"weather forecast rain snow sunny temperature",
	"warm warmer cold colder heat heating temperature thermostat",
	"light lamp bulb",
	"hotel room accommodation night",
	"flight plane airline fly",
	"train railway station",
	"route directions way path travel drive walk bike bus airport",
	"home house room kitchen bedroom living door light thermostat homeassistant",
	"oncall duty rota pager pagerduty night call",
	"stale old outdated cache purge",
	"secret password token key credential",
	"download link url presign signed temporary",
	"charge payment invoice bill subscription",
	"ride taxi cab car uber",
	"repo repository project",
	"review comment feedback",
	"change diff difference changed",
	"channel chat conversation room group",
	"team channel colleagues everyone",
	"contact lead crm customer",
	"graph chart plot diagram",
	"scan ocr characters recognize photo",
	"summary summarize overview",
	"news feed rss headlines",
	"domain dns record hostname",
	"distance far long",
	"dollar euro pound currency",
	"bitcoin ether crypto coin",
	"share stock ticker security quote",
	"javascript script console",
	"button link element click",
	"form field fill",
	"coordinates latitude longitude position location",
	"place restaurant shop location",
	"song track music album artist playlist",
	"video film movie clip",
	"transcript transcribe said subtitles spoken",
	"translate language",
	"money currency dollars euros amount",
	"time clock hour",
	"person user people member who colleague",
	"task todo reminder",
	"paper article preprint literature",
	"emoji reaction react smiley",
}

// relatedTerms returns, for each term, other terms of about the same meaning.
func relatedTerms(words *analysis.Analyzer) map[string][]string {
	related := map[string][]string{}
	for _, group := range groups {
		var terms []string
		for word := range strings.FieldsSeq(group) {
			for term := range words.Terms(word) {
				terms = append(terms, term)
			}
		}
		for _, term := range terms {
			for _, other := range terms {
				if other != term && !slices.Contains(related[term], other) {
					related[term] = append(related[term], other)
				}
			}
		}
	}
	return related
}

// plain are words that say little about the wanted tool.
const plain = "get set make see give let have take put do want need go come use show find tell say know many much one two please new all out up down this that some any thing"

// plainTerms are the terms of these words.
func plainTerms(words *analysis.Analyzer) map[string]bool {
	terms := map[string]bool{}
	for word := range strings.FieldsSeq(plain) {
		for term := range words.Terms(word) {
			terms[term] = true
		}
	}
	return terms
}
