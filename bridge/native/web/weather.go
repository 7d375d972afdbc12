package web

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// The endpoints of Open-Meteo (open-meteo.com/en/docs), which need no key.
const (
	GeocodeURL  = "https://geocoding-api.open-meteo.com/v1/search"
	ForecastURL = "https://api.open-meteo.com/v1/forecast"
)

// weatherTime bounds each of the two requests.
const weatherTime = 10 * time.Second

// Weather says where weather:get asks. Empty fields mean Open-Meteo.
type Weather struct{ GeocodeURL, ForecastURL string }

func (o Weather) withDefaults() Weather {
	if o.GeocodeURL == "" {
		o.GeocodeURL = GeocodeURL
	}
	if o.ForecastURL == "" {
		o.ForecastURL = ForecastURL
	}
	return o
}

func (w *web) weather(ctx context.Context, in tools.Input) (tools.Output, error) {
	location := in.String("location", "")
	var places struct {
		Results []struct {
			Name, Country       string
			Latitude, Longitude float64
		}
	}
	if err := w.forecast(ctx, in, w.Weather.GeocodeURL, url.Values{"name": {location}, "count": {"1"}, "language": {"en"}, "format": {"json"}}, &places); err != nil {
		return tools.Output{}, err
	}
	if len(places.Results) == 0 {
		return tools.Output{}, tools.Errorf(tools.NotFound, "Location not found: %s", location)
	}
	place := places.Results[0]
	var now struct {
		Current *struct {
			Temperature float64 `json:"temperature_2m"`
			Humidity    float64 `json:"relative_humidity_2m"`
			Code        int     `json:"weather_code"`
			Wind        float64 `json:"wind_speed_10m"`
		}
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	err := w.forecast(ctx, in, w.Weather.ForecastURL, url.Values{
		"latitude": {number(place.Latitude)}, "longitude": {number(place.Longitude)},
		"current": {"temperature_2m,relative_humidity_2m,weather_code,wind_speed_10m"},
	}, &now)
	switch {
	case err != nil:
		return tools.Output{}, err
	case now.Current == nil:
		return tools.Output{}, tools.Errorf(tools.Failed, "the forecast has no current weather")
	}
	name := place.Name
	if place.Country != "" {
		name += ", " + place.Country
	}
	return tools.Output{Values: map[string]any{
		"location": name, "temperature": now.Current.Temperature, "conditions": conditions(now.Current.Code),
		"humidity": int64(now.Current.Humidity), "wind_speed": now.Current.Wind, "units": "metric",
	}}, nil
}

func (w *web) forecast(ctx context.Context, in tools.Input, address string, values url.Values, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, weatherTime)
	defer cancel()
	r, err := withQuery(address, values)
	if err != nil {
		return tools.Errorf(tools.Failed, "the address of the weather service is none")
	}
	return failureOrNil(w.endpoint(ctx, in, toolWeather, r, nil, answer))
}

func failureOrNil(err error) error {
	if err == nil {
		return nil
	}
	return failure(err)
}

// conditions are the words for a code of the WMO (table 4677, as Open-Meteo uses it).
func conditions(code int) string {
	switch code {
	case 0:
		return "Clear sky"
	case 1:
		return "Mainly clear"
	case 2:
		return "Partly cloudy"
	case 3:
		return "Overcast"
	case 45, 48:
		return "Fog"
	case 51, 53, 55:
		return "Drizzle"
	case 56, 57:
		return "Freezing drizzle"
	case 61, 63, 65:
		return "Rain"
	case 66, 67:
		return "Freezing rain"
	case 71, 73, 75:
		return "Snow"
	case 77:
		return "Snow grains"
	case 80, 81, 82:
		return "Rain showers"
	case 85, 86:
		return "Snow showers"
	case 95:
		return "Thunderstorm"
	case 96, 99:
		return "Thunderstorm with hail"
	}
	return "Unknown"
}
