package main

import "runtime/debug"

// version is set for releases by -ldflags "-X main.version=1.2.3".
var version string

// developmentVersion is what a build calls itself that nobody gave a version.
const developmentVersion = "0.1.0-dev"

// revisionDigits of the commit are enough to find it.
const revisionDigits = 12

// buildVersion is the version of this build: X.Y.Z, and for a development
// build the commit it was made from.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return developmentVersion
	}
	return developmentVersion + revision(info.Settings)
}

func revision(settings []debug.BuildSetting) string {
	var commit, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), revisionDigits)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return "+" + commit + dirty
}
