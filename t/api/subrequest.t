#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Subrequests have no access phase, and the main request decides when they end.
# The module's locations refuse them, however nginx makes them.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $version = Test::Xet::Nginx::version();

for my $module (qw/ addition auth_request /) {
	plan(skip_all => "nginx without $module")
		if $version !~ /--with-http_${module}_module/;
}

my $t = Test::Xet->new(log => 'info',
	http => 'xet_token_key %%DIR%%/token.key;', server => <<'EOC');
location /page/ {
            ssi on;
            ssi_types *;
            root %%DIR%%;
        }

        location /added/ {
            add_after_body $arg_at;
            addition_types *;
            alias %%DIR%%/page/;
        }

        location /asked/ {
            auth_request /ask/;
            alias %%DIR%%/page/;
        }

        location /ask/ {
            rewrite ^ $http_x_at last;
        }

        location /mirrored/ {
            mirror /ask/;
            alias %%DIR%%/page/;
        }

        location /after/ {
            alias %%DIR%%/page/;
            post_action /api/health;
        }

        location /token {
            auth_basic closed;
            auth_basic_user_file %%DIR%%/users;
            xet_token;
            xet_token_scope write;
        }

        location /json/ {
            xet_api;
            xet_api_base /json;
            xet_auth off;
            error_page 403 @xet_error;
        }

        location /closed/ {
            xet_api;
            xet_api_base /closed;
            xet_auth token;
            xet_access store;
        }
EOC

$t->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');
$t->write_file('users', "alice:{PLAIN}secret\n");
$t->write_file('page/text', "a text\n" x 100);

$t->run();

my $data = random_bytes(1, 9000000);
my $file = $t->upload($data, scheme => 'none');
my $xorb = $file->{xorbs}[0];
my $v1 = '/api/v1';

my ($entry) = map { @$_ } values %{ $t->get("$v1/reconstructions/"
	. $file->{hash})->json()->{fetch_info} };
my ($signed) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
my ($plain) = $signed =~ /^([^?]+)/;

# the locations that a page could include

my %targets = (
	'a file' => "$v1/files/$file->{hash}",
	'a xorb' => "$v1/xorbs/default/$xorb->{hash}",
	'a plan' => "$v1/reconstructions/$file->{hash}",
	'plans' => "$v1/reconstructions?file_id=$file->{hash}",
	'chunk hashes' => "/api/v2/file-chunk-hashes/$file->{hash}",
	'a dedup query' => "$v1/chunks/default/$xorb->{chunks}[0]{hash}",
	'zTensor' => "$v1/zt/$file->{hash}",
	'a part of zTensor' => "$v1/zt/$file->{hash}/data?name=x",
	'health' => '/api/health',
	'no route' => '/api/nothing',
	'data' => $plain,
	'data, signed' => $signed,
	'a token' => '/token',
	'what needs a token' => "/closed/v1/files/$file->{hash}",
);

for my $name (sort keys %targets) {
	my $at = $targets{$name};
	my ($path) = $at =~ /^([^?]+)/;

	$t->write_file("page/index-$name.html", "(<!--# include virtual="
		. "\"$at\" -->)");

	my $r = $t->get('/page/index-' . $name =~ s/ /%20/gr . '.html');

	is($r->{status}, 200, "ssi: $name: page");
	like($r->{body}, qr/^\(.*(?:403 Forbidden|"forbidden").*\)$/s,
		"ssi: $name: refused");
	untold("ssi: $name", $r);
	ok($t->wait_log(qr/xet: subrequest rejected: "\Q$path\E"/),
		"ssi: $name: a line");

	$at =~ s/([?&])/sprintf('%%%02x', ord($1))/ge;

	$r = $t->get("/added/text?at=$at");
	is($r->{status}, 200, "addition: $name");
	untold("addition: $name", $r);

	my $from = $t->log_size();

	is($t->get('/asked/text', { 'X-At' => $path })->{status}, 403,
		"auth_request: $name");

	$r = $t->get('/mirrored/text', { 'X-At' => $path });
	is($r->{body}, "a text\n" x 100, "mirror: $name");

	ok(wait_for(10, sub {
		return 2 == (() = $t->log($from)
			=~ /subrequest rejected: "\Q$path\E"/g);
	}), "auth_request, mirror: $name: lines");
}

# the error of the location is included in the page

$t->write_file('page/json.html',
	"(<!--# include virtual=\"/json/health\" -->)");
is($t->get('/page/json.html')->{body}, '({"error":{"code":"forbidden",'
	. '"message":"forbidden"}})', 'error_page of the location');

# uploads, with the body of the main request

my $new = make_xorb(random_bytes(5, 100000));
my $r = $t->post('/mirrored/text', $new->{bytes},
	{ 'X-At' => "$v1/xorbs/default/$new->{hash}" });

is($t->head("$v1/xorbs/default/$new->{hash}")->{status}, 404,
	'mirror: nothing uploaded');
is($t->http('DELETE', '/mirrored/text', { 'X-At' =>
	"$v1/files/$file->{hash}" })->{status}, 405, 'mirror: DELETE');
is($t->head("$v1/files/$file->{hash}")->{status}, 200,
	'mirror: nothing deleted');

# requests that nginx makes after a request

my $from = $t->log_size();

is($t->get('/after/text')->{body}, "a text\n" x 100, 'post_action');
ok($t->wait_log(qr!subrequest rejected: "/api/health"!, 10, $from),
	'post_action: refused');

# slow clients and clients that disconnect, on pages with many subrequests

$t->write_file('page/much.html', join("\n", map {
	"<!--# include virtual=\"$targets{$_}\" -->" }
	('a file', 'a plan', 'a xorb') x 10));

for my $n (1 .. 20) {
	my $c = $t->connect(rcvbuf => 4096);

	$c->start('GET', '/page/much.html');
	$c->read_some(2000 * $n, 0.05);
	$n % 2 ? $c->abort() : $c->close();
}

is($t->get('/api/health')->{status}, 200, 'all workers are well');
is(scalar(() = $t->log() =~ /exited on signal/g), 0, 'none has died');

# main requests, and an internal redirect, which is checked as well

is($t->get($targets{'a file'})->{body}, $data, 'a file');
is($t->get($targets{'a xorb'})->{status}, 200, 'a xorb');
is($t->get($signed, { Range => 'bytes=0-9' })->{status}, 206, 'data');
is($t->get('/token')->{status}, 401, 'a token needs a password');
like($t->get('/token', { Authorization => 'Basic YWxpY2U6c2VjcmV0' })
	->json()->{accessToken}, qr/^[\w.-]+$/, 'a token');

$t->done();

# --------------------------------------------------------------------------

sub untold {
	my ($name, $r) = @_;

	ok(length($r->{body}) < 2000
		&& $r->{body} !~ /accessToken|fetch_info|"status"/
		&& index($r->{body}, $xorb->{hash}) < 0
		&& index($r->{body}, substr($data, 0, 20)) < 0,
		"$name: reveals nothing") or diag(substr($r->{body}, 0, 300));
}
