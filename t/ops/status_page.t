#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The status page, with the shipped configuration: the text and the JSON; plots
# whose numbers are those of the requests made here, and which survive a reload;
# failed checks, with the paragraph that says what to do; and in a browser at
# two sizes and in both colours.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Process qw/ build_dir root slurp wait_for /;
use Test::Xet::Real;

use List::Util qw/ max sum /;

my $t = Test::Xet->new();
my $text = $t->shipped_conf();

$text =~ s!location = /status \{!location = /plain { xet_status; }
        location = /closed {
            deny all;
            xet_status page=/-/status.html;
            error_page 403 \@xet_error;
        }
        location = /repos { xet_status repos page=/-/status.html; }
        location = /based { xet_status; xet_url_base https://c.example/x; }
        $&! or die;
$text =~ s/xet_auth off;/xet_auth off; xet_hosts *;/ or die;

# a server without a Hub

$text =~ s!\}\s*\z!    server {
        listen 127.0.0.1:%%PORT_8081%%;
        xet_url_base http://127.0.0.1:%%PORT_8081%%;
        xet_auth off;

        location /api/ { xet_api; }
        location = /status { xet_status page=/-/status.html; }
        location ^~ /-/ { alias %%DIR%%/web/; }
    }
}
! or die;

$t->write_conf($text);
$t->run();

my %html = (Accept => 'text/html,*/*;q=0.8');
my $file = $t->upload(mix(1, 300000));

ok(wait_for(40, sub { (status()->{xet_files} // 0) == 1 }),
	'figures appear after the first request');

# --------------------------------------------------------------------------
# without HTML

my $r = $t->get('/status');

is($r->{status}, 200, 'a text');
is($r->header_value('Content-Type'), 'text/plain; charset=utf-8', 'plain');
is($r->header_value('Cache-Control'), 'no-store', 'nobody keeps it');
like(join(', ', $r->header_value('Vary')), qr/Accept/, 'Vary');
like($r->{body}, qr/^ok  PostgreSQL responds\.$/m, 'a check in words');
like($r->{body}, qr/^All checks passed\.$/m, 'a summary');
like($r->{body}, qr/^HF_ENDPOINT=\Q@{[ $t->url('') ]}\E$/m, 'the endpoint');
unlike($r->{body}, qr/<|docs/, 'no markup, no help that nobody needs');
like($t->get('/based')->{body}, qr!^HF_ENDPOINT=https://c\.example/x$!m,
	'the endpoint that is configured');
is($t->get('/plain', \%html)->header_value('Content-Type'),
	'text/plain; charset=utf-8', 'without page=: the text for all');

is($t->head('/status')->{status}, 200, 'HEAD');
is($t->post('/status', 'x')->{status}, 405, 'POST');
is($t->get('/status?format=prometheus')->{status}, 400,
	'no format of Prometheus');

for my $query ('', '?format=json') {
	for my $accept ({}, \%html) {
		my $r = $t->get("/closed$query", $accept);

		is($r->{status}, 403, "closed$query");
		unlike($r->{body}, qr/PostgreSQL|<html|history/,
			"closed$query: nothing");
	}
}

# the only client input is the Host header

for my $host ('a"><script>evil()', '<img>', "a'\\") {
	my $c = $t->connect();

	$c->send("GET /plain?format=json HTTP/1.0\r\nHost: $host\r\n\r\n");

	my $r = $c->response('GET');

	is($r->{status}, 200, "Host: $host");
	is(ref($r->json()), 'HASH', "Host: $host: JSON");
	$c->close();
}

# --------------------------------------------------------------------------
# the file for browsers

my $page = $t->get('/status', \%html);
my $policy = $page->header_value('Content-Security-Policy');

is($page->{status}, 200, 'a page');
is($page->header_value('Content-Type'), 'text/html', 'HTML');
is($page->{body}, slurp(root() . '/src/web/status.html'),
	'the file, the same for everyone');
is($policy, $t->get('/-/app.js')->header_value('Content-Security-Policy'),
	'the policy of the other pages');
like($policy, qr/^default-src 'none'; script-src 'self'; style-src 'self';/,
	'nothing but files of this server');
like($page->{body}, qr/<noscript>/, 'it says what to do without scripts');

# --------------------------------------------------------------------------
# plots: what was requested here is what they show

my $before = status();

$t->get('/api/health/live') for 1 .. 7;
is($t->get('/api/v1/nothing')->{status}, 404, 'a request that fails')
	for 1 .. 3;
$t->upload(mix(2, 2_000_000));
is($t->get("/api/v1/files/$file->{hash}")->{status}, 200, 'a download');
$t->get('/metrics') for 1 .. 5;

my $after;

ok(wait_for(20, sub { $after = status(); counted('4xx') == 3 }),
	'three failed requests');
cmp_ok(counted('2xx'), '>=', 10, 'successful requests');
is(counted('5xx'), 0, 'none failed in the server');
is_deeply(totals($after), exposed($after), 'sums are those of the metrics');
cmp_ok(total($after, 'received') - total($before, 'received'), '>', 1_000_000,
	'bytes received');
cmp_ok(total($after, 'sent') - total($before, 'sent'), '>', 300_000,
	'bytes sent');
is(sum(map { @$_ } @{ $after->{history}{durations} }),
	sum(map { @$_ } values %{ $after->{history}{requests} }),
	'each request has a duration');

# a ring that survives a reload, and the end of its writer

my ($seen, @sample);

ok(wait_for(90, sub { ($seen = status()->{history})->{time}[2] }),
	'a sample every minute');
@sample = ($seen->{time}[1], map { $_->[1] } @{ $seen->{requests} }
	{qw/ 2xx 3xx 4xx 5xx /}, $seen->{received}, $seen->{sent});
is($sample[3], 7, 'the failed requests are in the sample');

$t->reload();
$t->kill_worker('KILL', $_) for $t->worker_pids();
ok(wait_for(20, sub { eval { $seen = status()->{history} } }), 'reloaded');
is_deeply([ $seen->{time}[1], map { $_->[1] } @{ $seen->{requests} }
	{qw/ 2xx 3xx 4xx 5xx /}, $seen->{received}, $seen->{sent} ], \@sample,
	'the same sample after a reload and a killed worker');
is_deeply(totals($after = status()), exposed($after), 'and the same sums');
ok(wait_for(40, sub { defined status()->{history}{stored}[-1] }),
	'the size of the store');

# --------------------------------------------------------------------------
# jobs

$t->sql("INSERT INTO xet.jobs (name, cursor, started_at, note) VALUES"
	. " ('gc', '2', now(), 'the <b> store'),"
	. " ('scrub', '1', now() - interval '1 hour', NULL)");

my $backup = $t->pg_session();

$backup->run("SELECT pg_advisory_lock_shared(hashtext('xet.copies'), 0)");

my %jobs;

ok(wait_for(60, sub { %jobs = map { $_->{name} => $_ }
	@{ status()->{jobs} }; $jobs{gc} && $jobs{backup} }), 'jobs');
is($jobs{gc}{done}, 400, 'a job: the second of five phases is done');
is($jobs{scrub}{done}, int(1000 / $t->sql('SELECT max(id) FROM xet.xorbs')),
	'a job: rows of all rows');
ok(!$jobs{gc}{held}, 'a job that no worker has');
ok($jobs{backup}{running}, 'a backup');
ok(!$jobs{migration}, 'no migration');
is(check('jobs')->{text}, 'The background job "gc" waits: the <b> store.',
	'a job that waits, in words');
like($t->get('/status')->{body}, qr!^BAD The background job .*
    See docs/trouble\.md#a-background-job-waits$!m, 'and in the text');

# --------------------------------------------------------------------------
# the anchors of all checks exist

my $source = slurp(root() . '/src/http/monitor/ngx_http_xet_status.c');
my %anchors = map { lc(s/ /-/gr) => 1 }
	slurp(root() . '/docs/trouble.md') =~ /^### (.*)$/mg;
my @help = $source =~ /^    \{ "\w+", "([a-z-]+)",$/mg;

is(scalar @help, 7, 'checks with help');
is(join(' ', grep { !$anchors{$_} } @help), '', 'all have a paragraph');

# --------------------------------------------------------------------------
# in a browser

my $b = Test::Xet::Browser->new();
my $axe = Test::Xet::Real::build() . '/npm/node_modules/axe-core/axe.min.js';

if ($b) {
	browse();
	$b->close();

} else {
	diag('NO chromium: the page was not looked at');
}

$backup->close();

$t->allow(qr/connecting to PostgreSQL failed|terminating connection/);
$t->allow(qr/failed, SQLSTATE|did not respond|connection to .* lost/);
$t->allow(qr/ xet: (?:4\d\d|50\d) |access forbidden by rule|exited on signal/);
$t->done();

# --------------------------------------------------------------------------

sub status { return $t->get('/status?format=json')->json() }

sub check {
	my ($name) = @_;

	return (grep { $_->{name} eq $name } @{ status()->{checks} })[0];
}

# Returns a sum over the history.

sub total { return sum(@{ $_[0]->{history}{$_[1]} }) }

sub totals {
	my ($status) = @_;

	my $h = $status->{history};

	return { received => sum(@{ $h->{received} }),
		sent => sum(@{ $h->{sent} }),
		map { $_ => sum(@{ $h->{requests}{$_} }) }
			keys %{ $h->{requests} } };
}

# Returns the same sums from the metrics of the same response.

sub exposed {
	my ($status) = @_;

	my %sum;

	for my $route (keys %{ $status->{xet_requests_total} }) {
		next if $route eq 'metrics' || $route eq 'status';

		my $classes = $status->{xet_requests_total}{$route};

		$sum{$_} += $classes->{$_} for keys %$classes;
		$sum{received} += $status->{xet_received_bytes_total}{$route};
		$sum{sent} += $status->{xet_sent_bytes_total}{$route};
	}

	return \%sum;
}

# Returns the requests of a class since $before.

sub counted {
	my ($class) = @_;

	return sum(@{ $after->{history}{requests}{$class} })
		- sum(@{ $before->{history}{requests}{$class} });
}

sub main_text {
	return $b->js('document.querySelector("main").innerText') // '';
}

sub shows {
	my ($pattern, $name) = @_;

	my $seen = '';

	ok(wait_for(40, sub { ($seen = main_text()) =~ $pattern }), $name)
		or diag($seen);
}

sub label {
	my ($title) = @_;

	return $b->js("[...document.querySelectorAll('.plot svg[role=img]')]
		.map((one) => one.getAttribute('aria-label'))
		.find((one) => one.startsWith('$title'))");
}

# What axe calls serious or critical.

sub faults {
	my ($name) = @_;

	return unless -f $axe;

	$b->js(slurp($axe) . '; 1') unless $b->js('typeof axe === "object"');

	is($b->js('axe.run(document, { resultTypes: ["violations"] })
		.then((r) => r.violations
		.filter((v) => /serious|critical/.test(v.impact))
		.map((v) => v.id + ": " + v.nodes[0].html + " "
			+ v.nodes[0].failureSummary).join("\n"))'), '',
		"$name: axe");
}

# Looks at the page at two sizes and in both colours.

sub look {
	my ($name) = @_;

	for my $width (1280, 390) {
		$b->size($width, 900);
		cmp_ok($b->js('document.documentElement.scrollWidth'), '<=',
			$width, "$name: $width: no scrolling sideways");

		for my $scheme (qw/ light dark /) {
			$b->call('Emulation.setEmulatedMedia', { features => [ {
				name => 'prefers-color-scheme',
				value => $scheme } ] });
			faults("$name: $width: $scheme");
			cmp_ok($b->contrast(), '>=', 4.5,
				"$name: $width: $scheme: contrast");

			my $shot = build_dir()
				. "/status-$name-$width-$scheme.png";

			$b->screenshot($shot);
			cmp_ok(-s $shot, '>', 10000, "a picture: $shot");
		}
	}

	$b->size(1280, 900);
}

sub browse {
	$b->size(1280, 900);
	$b->open($t->url('/status'));
	shows(qr/PostgreSQL responds/, 'checks');
	like(main_text(), qr!export HF_ENDPOINT=\Q@{[ $t->url('') ]}\E$!m,
		'the endpoint to copy');
	shows(qr/Garbage collection\s+40 %/, 'a job with its progress');
	shows(qr/Backup or rebuild\s+running/, 'a backup');
	shows(qr/the <b> store/, 'a note is text');

	numbers();
	help();
	look('bad');

	$b->js('document.querySelectorAll(".plots-head button")[0].click()');
	is($b->js('document.activeElement.textContent'), '1 hour',
		'a choice keeps the focus');
	like(label('Requests'), qr/^Requests per second since \d\d:\d\d/,
		'the last hour');

	$t->sql('DELETE FROM xet.jobs');
	$backup->run('SELECT pg_advisory_unlock_all()');
	shows(qr/All checks passed/, 'all is well again');
	look('good');
	reading();
	away();

	repos();
	bare();
	$b->open($t->url('/-/status.html'));
	ok(wait_for(20, sub { main_text() =~ /at the location of xet_status/ }),
		'the file itself: it says where the page is');
	$b->open($t->url('/closed'));
	unlike($b->js('document.body.innerText'), qr/PostgreSQL/, 'closed');
}

# The plots have the numbers of the JSON.

sub numbers {
	my $label;

	# an interval of a few seconds is merged with the one before

	ok(wait_for(60, sub {
		my $h = status()->{history};
		my @t = @{ $h->{time} };
		my $most = max(map { $h->{requests}{'4xx'}[$_] * 1000
			/ ($t[$_] - $t[$_ - 1]) } 1 .. $#t);

		$label = label('Requests');

		my ($shown) = $label
			=~ m!4xx: now [\d.e-]+/s, at most ([\d.e-]+)/s!;

		return $most > 0 && abs($shown - $most) <= $most * 0.1;
	}), 'the maximum of failed requests') or diag($label);
	like($label, qr!5xx: now 0/s, at most 0/s!, 'no failed requests');
	like(label('Size of the store'),
		qr/Stored: now 1\.\d MiB.*Files: now 2\.2 MiB/, 'the size');
	like(label('Bytes'), qr/Received: now .*Sent: now /, 'bytes');
	like(label('Duration'), qr/95 of 100: now .* ms, at most /, 'latency');
	like($b->js('document.querySelector(".plot .line-3")
		.getAttribute("d")'), qr/^M0\.0 /, 'a line from the start');
	is($b->js('document.querySelector("[data-name=files]").textContent'),
		2, 'files');
}

# What to do about a damaged xorb: the paragraph of docs/trouble.md.

sub help {
	$t->sql('UPDATE xet.xorbs SET damaged_at = now() WHERE id ='
		. ' (SELECT min(id) FROM xet.xorbs)');
	shows(qr/Damaged xorbs: 1\./, 'a damaged xorb');
	shows(qr/Several checks need attention/, 'a summary');
	like(main_text(), qr!docs/trouble\.md#xorbs-are-damaged!, 'a link');
	$b->js('document.querySelector("[data-name=damage] summary").click()');
	shows(qr!Run xet verify --store.*\(docs/store\.md#repair-damage\)!s,
		'what to do');
	is($b->js('document.querySelector("[data-name=damage]").dataset.state'),
		'bad', 'marked');
	is($b->js('document.querySelector("[data-name=damage] .icon")
		.getAttribute("aria-label")'), 'Bad', 'not only by colour');
	$t->sql('UPDATE xet.xorbs SET damaged_at = NULL');
}

# A keyboard and a screen reader.

sub reading {
	my (%seen, @focus);

	$b->open($t->url('/status'));
	shows(qr/All checks passed/, 'opened again');

	for (1 .. 20) {
		$b->key('Tab');

		next if $b->js('document.activeElement === document.body');

		my ($name, $outline) = @{ $b->js('(() => { const e =
			document.activeElement; return [(e.ariaLabel
			|| e.innerText || e.id || e.tagName).trim(),
			getComputedStyle(e).outlineStyle]; })()') };

		last if $seen{$name}++;
		push @focus, $name;
		is($outline, 'solid', "Tab: $name shows that it is there");
	}

	like("@focus", qr/Copy the command.*1 hour.*24 hours/s,
		'Tab: all that acts');

	my %roles = $b->roles();

	is(scalar(@{ $roles{$_} || [] }), 1, "a landmark: $_")
		for qw/ banner main contentinfo /;
	is_deeply($roles{region}, [ 'Health', 'Endpoint for clients', 'Load',
		'Background jobs', 'Stored' ], 'regions with names');
	is(scalar(grep { /^(?:Requests|Bytes|Duration|Size)\b.*: now / }
		@{ $roles{image} || $roles{img} || [] }), 4,
		'plots that can be read');
	is($b->js('[...document.querySelectorAll("main [role=status]")]
		.map((one) => one.id).join(" ")'), 'summary stale',
		'only the summary is read when it changes');

	my @foreign = grep { !m!^\Q@{[ $t->url('/') ]}\E! }
		map { $_->{request}{url} }
		$b->events('Network.requestWillBeSent');

	is("@foreign", '', 'nothing of another host');
	is(join(' ', grep { /token|eyJ/ } map { $_->{request}{url} }
		$b->events('Network.requestWillBeSent')), '',
		'no token in a URL');

	my @log = grep { !/favicon|status of 401/ } map { $_->{entry}{text} }
		$b->events('Log.entryAdded');

	is("@log", '', 'nothing in the log of the browser');
}

# Names of repos, only where they are configured, and always as text.

sub repos {
	my $evil = q{<script>document.title = "evil"</script>"&'};

	$t->sql("INSERT INTO xet.repos (name) VALUES (\$\$$evil\$\$)");
	$t->sql('INSERT INTO xet.repo_files (repo_id, file_id)'
		. ' SELECT max(r.id), 1 FROM xet.repos r');
	$b->open($t->url('/repos'));
	ok(wait_for(60, sub { index(main_text(), $evil) >= 0 }),
		'repos: a name is text');
	is($b->js('document.querySelectorAll("script").length'), 1,
		'repos: no other script');
	unlike($b->js('document.title'), qr/evil/, 'repos: nothing is run');

	for my $width (1280, 390) {
		$b->size($width, 900);
		cmp_ok($b->js('document.documentElement.scrollWidth'), '<=',
			$width, "repos: $width: no scrolling sideways");
		faults("repos: $width");
	}

	unlike($t->get($_)->{body}, qr/evil/, "$_: no names")
		for '/status', '/status?format=json', '/repos';
}

# A server without a Hub.

sub bare {
	my $base = 'http://127.0.0.1:' . $t->port(8081);

	$b->open("$base/status");
	shows(qr!export XET_ENDPOINT=\Q$base\E/api$!m, 'no Hub: the endpoint');
	is($b->js('document.querySelector("header").innerText'), 'Xet server',
		'no Hub: the header');
	faults('no Hub');
	is(join(' ', grep { !m!^\Q$base\E/(?:-/|status)! }
		map { $_->{request}{url} }
		$b->events('Network.requestWillBeSent')), '',
		'no Hub: no request to one');
}

# PostgreSQL is away, then the server.

sub away {
	$t->pg_stop();
	shows(qr/PostgreSQL does not respond: only signed/, 'no PostgreSQL');
	like(main_text(), qr!docs/trouble\.md#postgresql-does-not-respond!,
		'no PostgreSQL: a link');
	like($b->js('document.title'), qr/^! Status/, 'in the title');
	is($t->get("/api/v1/files/$file->{hash}")->{status}, 503,
		'a request that fails');
	shows(qr/requests in the last hour: 1 of \d+\.\s+What to do: \S+#req/,
		'failed requests');
	look('postgres');
	$t->pg_start();
	shows(qr/One check needs attention/, 'it is back');

	$t->stop();
	shows(qr/The server does not respond; showing its last/, 'no server');
	like(main_text(), qr/PostgreSQL responds/, 'the last known state');
	$t->run();
	ok(wait_for(40, sub { main_text() !~ /showing its last/ }),
		'the server is back');
}
