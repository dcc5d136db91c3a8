package browser

import (
	"os"
	"slices"
	"strings"
)

// profileFlag is how a profile stands on the command line of Chromium and of each
// of its children.
func profileFlag(profile string) string { return "--user-data-dir=" + profile }

// without names features that need a process, a connection, or a look at the
// local network, and that nobody asked for.
const without = "Translate,MediaRouter,DialMediaRouteProvider,OptimizationHints,OptimizationGuideModelDownloading," +
	"AutofillServerCommunication,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,DnsOverHttps," +
	"NetworkTimeServiceQuerying,WebRtcHideLocalIpsWithMdns,SpareRendererForSitePerProcess," +
	"PreloadTopChromeWebUI,WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup,WebUIOmniboxSimplification"

// flags are the arguments of Chromium.
func flags(profile string, network map[string]string) []string {
	all := []string{
		"--headless=new", "--remote-debugging-pipe", "--no-startup-window", profileFlag(profile),
		"--disable-features=" + without,
		"--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-domain-reliability", "--no-pings", "--dns-prefetch-disable", "--no-first-run", "--no-default-browser-check",
		"--disable-default-apps", "--disable-extensions", "--disable-breakpad", "--disable-crash-reporter",
		"--disable-client-side-phishing-detection", "--disable-dev-shm-usage", "--disable-gpu", "--mute-audio", "--hide-scrollbars",
		"--deny-permission-prompts", "--disable-notifications", "--disable-speech-api", "--disable-print-preview",
		"--password-store=basic", "--use-mock-keychain", "--metrics-recording-only", "--window-size=1024,768",
	}
	for name, value := range network {
		all = append(all, "--"+name+"="+value)
	}
	if os.Geteuid() == 0 {
		all = append(all, "--no-sandbox") // it cannot be had as root
	}
	slices.Sort(all)
	return all
}

// environment is what Chromium gets to know of ours: no secret of the server's.
// What it writes beside its profile goes there too.
func environment(profile string) []string {
	all := []string{"HOME=" + profile}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "FONTCONFIG_PATH", "FONTCONFIG_FILE":
			all = append(all, entry)
		}
	}
	return all
}
