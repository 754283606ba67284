#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The alerts and the dashboard in conf: promtool accepts the rules; each alert
# fires when it should, and no alert fires for a healthy server.  A server
# reports every metric of the rules and the dashboard, and every alert is
# documented.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ root run_command slurp spew /;

use File::Temp qw/ tempdir /;
use JSON::PP ();

my $rules = root() . '/conf/xet_alerts.yml';
my $text = slurp($rules);
my @alerts = $text =~ /- alert: (\w+)/g;

my $t = Test::Xet->new(log => 'info', http => 'xet_token_cache zone=t:1m;',
	locations => <<'EOC');
xet_auth off;
location /api/ { xet_api; }
location = /metrics { xet_metrics; }
EOC

$t->run();

# --------------------------------------------------------------------------
# names

my ($scrape, %told);

wait_for(40, sub {
	$scrape = $t->get('/metrics')->{body};
	return $scrape =~ /^xet_xorbs /m && $scrape =~ /^xet_store_free_/m;
});

$told{$_} = 1 for $scrape =~ /^(\w+)(?:\{.*\})? /mg;

# gauges that only background jobs set appear after the first run

my %gauge = map { $_ => 1 } slurp(root() . '/src/http/base/metrics.def')
	=~ /^XET_METRIC\(\w+, GAUGE,[^"]*"(\w+)"/mg;

cmp_ok(keys %gauge, '>', 10, 'gauges');

sub unknown {
	my ($query) = @_;

	return grep { !$told{$_} && !$gauge{$_} }
		$query =~ s/"[^"]*"//gr =~ /\b(xet_\w+)/g;
}

my @exprs = $text =~ /^        expr: (.*?)\n(?=        \w)/msg;

is(@exprs, @alerts, 'each alert has an expression');
is(join(' ', map { unknown($_) } @exprs), '', 'metrics of the alerts');

my $board = JSON::PP->new()->decode(slurp(root() . '/conf/xet_grafana.json'));
my (@queries, %labels);

sub queries {
	my ($node) = @_;

	if (ref $node eq 'HASH') {
		push @queries, $node->{expr} if defined $node->{expr};
		queries($_) for values %$node;

	} elsif (ref $node eq 'ARRAY') {
		queries($_) for @$node;
	}
}

queries($board);
cmp_ok(@queries, '>', 30, 'queries of the board');
is(join(' ', map { unknown($_) } @queries), '', 'metrics of the board');

# every label in a rule is reported by a server or added by Prometheus

$labels{$_} = 1 for $scrape =~ /(\w+)="/g, qw/ instance job le /;

my @by = map { split(/, */) } map { /by \(([^)]*)\)/g } @queries, @exprs;
my @in = map { /[{,]\s*(\w+)(?:=|!)/g } @queries, @exprs;
my @of = map { /\{\{(\w+)\}\}/g } map { map { $_->{legendFormat} }
	@{ $_->{targets} || [] } } @{ $board->{panels} };

is(join(' ', grep { !$labels{$_} } @by, @in, @of), '', 'labels');

my %ids = map { $_->{id} => 1 } @{ $board->{panels} };

is(keys %ids, @{ $board->{panels} }, 'panels have ids of their own');

# the documented alerts

my $doc = slurp(root() . '/docs/monitoring.md');

is(join(' ', $doc =~ /^\| `(Xet\w+)` \|/mg), "@alerts",
	'alerts of the document');

$t->check();

# --------------------------------------------------------------------------
# promtool

my ($status, $out) = run_command([ 'sh', '-c',
	"promtool check rules $rules 2>&1" ]);

if ($status >> 8 == 127) {
	diag('NO promtool: the rules were not tested');
	$t->done();
	exit;
}

is($status, 0, 'promtool finds nothing wrong') or diag($out);

# The series of a healthy server, one value per minute; time begins at 0.

my $a = 'instance="a"';
my @well = (
	qq/up{job="xet",$a}/ => '1x', qq/xet_postgres_up{$a}/ => '1x',
	qq/xet_store_writable{$a}/ => '1x',
	qq/xet_store_time_seconds{$a}/ => '0+60x',
	qq/xet_figures_time_seconds{$a}/ => '0+60x',
	qq/xet_gc_time_seconds{$a}/ => '0+60x',
	qq/xet_scrub_time_seconds{$a}/ => '0+60x',
	qq/xet_store_free_bytes{$a}/ => '60x',
	qq/xet_store_size_bytes{$a}/ => '100x',
	qq/xet_damaged_xorbs{$a}/ => '0x',
	qq/xet_requests_total{$a,route="data",class="2xx"}/ => '0+60000x',
	qq/xet_requests_total{$a,route="data",class="5xx"}/ => '0+1x',
	qq/xet_statement_oldest_seconds{$a,pg_pool="read"}/ => '0x',
	qq/xet_statements_total{$a,pg_pool="read",result="ok"}/ => '0+60x',
	qq/xet_statements_total{$a,pg_pool="read",result="away"}/ => '0x',
	qq/xet_job_oldest_seconds{$a,pool="upload"}/ => '0x',
	qq/xet_jobs_refused_total{$a,pool="upload"}/ => '0x',
	qq/xet_workers_started_total{$a}/ => '4x',
	qq/xet_load_time_seconds{$a}/ => '0x',
	qq/xet_refusals_total{$a,reason="invalid_token"}/ => '0+10x',
	qq/xet_refusals_total{$a,reason="overloaded"}/ => '0x'
);

# [ name, { series that differ from @well }, minute, expected alert ]

my @cases = (
	[ 'all is well', {}, 1500 ],
	[ 'down', { up => '0x30' }, 5, 'XetDown' ],
	[ 'down for a moment', { up => '1x4 0 1x30' }, 6 ],
	[ 'PostgreSQL', { xet_postgres_up => '0x30' }, 5, 'XetPostgresAway' ],
	[ 'read-only', { xet_store_writable => '0x30' }, 5,
		'XetStoreNotWritable' ],
	[ 'a disk hangs', { xet_store_time_seconds => '0x30' }, 15,
		'XetStoreSilent' ],
	[ 'full', { xet_store_free_bytes => '4x60' }, 30,
		'XetStoreAlmostFull' ],
	[ 'fills up', { xet_store_free_bytes => '29-0.01x1000' }, 700,
		'XetStoreFillsUp' ],
	[ 'an upload after the first scrapes', { xet_store_free_bytes =>
		'29x20 29-0.05x100' }, 110 ],
	[ 'scrapes that were missed', { xet_store_free_bytes =>
		'29-0.01x20 _x400 24.8-0.01x100' }, 510 ],
	[ 'damage', { xet_damaged_xorbs => '0x3 2x30' }, 5, 'XetDamage' ],
	[ '5xx', { 'xet_requests_total\{.*5xx' => '0+6000x100' }, 20,
		'XetErrors' ],
	[ 'a pool', { xet_statement_oldest_seconds => '10+60x100' }, 10,
		'XetStatementsStuck' ],
	[ 'statements fail', { 'xet_statements_total\{.*away' => '0+60x100' },
		20, 'XetStatementsFail' ],
	[ 'a job', { xet_job_oldest_seconds => '10+60x100' }, 10,
		'XetJobsStuck' ],
	[ 'a queue', { xet_jobs_refused_total => '0x5 3x30' }, 8,
		'XetJobsRefused' ],
	[ 'workers die', { xet_workers_started_total => '4+4x100' }, 40,
		'XetWorkersDie' ],
	[ 'workers of a reload', { xet_workers_started_total =>
		'4x20 64x20', xet_load_time_seconds => '0x20 1260x20' }, 24 ],
	[ 'tokens', { 'xet_refusals_total\{.*invalid_token' => '0+600x100' },
		20, 'XetTokensRefused' ],
	[ 'uploads', { 'xet_refusals_total\{.*overloaded' => '0+60x100' }, 20,
		'XetUploadsRefused' ],
	[ 'scrub', { xet_scrub_time_seconds => '0x70000' }, 66540,
		'XetScrubTooOld' ],
	[ 'gc', { xet_gc_time_seconds => '0x30000' }, 20520, 'XetGcTooOld' ],
	[ 'figures', { xet_figures_time_seconds => '0x100' }, 40,
		'XetFiguresStale' ]
);

is(join(' ', map { $_->[3] // () } @cases), "@alerts",
	'each alert is tried');

my $dir = tempdir(CLEANUP => 1);

for my $case (@cases) {
	my ($name, $other, $minute, $alert) = @$case;
	my $step = $minute > 2000 ? 60 : 1;

	spew("$dir/test.yml", join("\n", "rule_files: [ $rules ]",
		"evaluation_interval: ${step}m", 'tests:', '  - interval: 1m',
		'    input_series:', series($other, $minute),
		'    promql_expr_test:', '      - expr: count by (alertname)'
		. ' (ALERTS{alertstate="firing"})',
		"        eval_time: ${minute}m", '        exp_samples: ['
		. (defined $alert ? "{ labels: '{alertname=\"$alert\"}',"
		. ' value: 1 }' : '') . ']', ''));

	($status, $out) = run_command([ 'sh', '-c',
		"promtool test rules $dir/test.yml 2>&1" ], timeout => 300);
	is($status, 0, "$name: " . ($alert // 'nothing')) or diag($out);
}

sub series {
	my ($other, $minute) = @_;

	my @lines;
	my %left = %$other;

	for (my $i = 0; $i < @well; $i += 2) {
		my ($name, $values) = @well[$i, $i + 1];
		my ($key) = grep { $name =~ /^$_/ } keys %$other;

		$values = defined $key ? $other->{$key}
			: $values . ($minute + 100);
		delete $left{$key} if defined $key;

		push @lines, "      - { series: '$name', values: '$values' }";
	}

	die join(' ', %left) . ": no such series\n" if %left;

	return @lines;
}

$t->done();
