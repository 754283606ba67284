#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The addition filter with slow subrequests before and after the body.  The
# filter adds nothing to a response of the module, and the response stays
# complete.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ wait_for /;

Test::Xet->folder('modules of nginx over files');

my $t = Test::Xet->new(workers => 1, log => 'info', server => <<'EOF');
location /added/ {
            xet_api;
            xet_auth         off;
            xet_api_base     /added;
            add_before_body  /head;
            add_after_body   /head;
            addition_types   *;
        }

        location /beside/ {
            alias            %%STORE%%/;
            add_before_body  /head;
            add_after_body   /head;
            addition_types   *;
        }

        location = /head {
            proxy_pass  http://127.0.0.1:%%PORT_8080%%/slow;
        }

        location = /slow {
            limit_rate  20k;
            root        %%STORE%%;
            try_files   /slow.txt =404;
        }
EOF

plan(skip_all => 'nginx has no addition module')
	unless Test::Xet::Nginx::version() =~ /with-http_addition_module/;

$t->run();

my $head = 'h' x 30000;

open(my $out, '>', $t->store() . '/slow.txt') or die "slow.txt: $!\n";
print $out $head;
close($out);

# responses of other handlers get both additions

my $r = $t->get('/beside/slow.txt', {}, timeout => 60);

ok($r->{body} eq $head x 3, 'another response: additions')
	or diag(length($r->{body}) . ' bytes');

my $data = mix(1, 3_000_000);

$r = $t->http('PUT', '/api/v1/files', {}, \$data);

is($r->{status}, 200, 'a file');

my $hash = $r->json()->{hash};

for my $round (1 .. 3) {
	$r = $t->get("/added/v1/files/$hash", {}, timeout => 60);

	is($r->{status}, 200, "round $round: a file in pieces");
	ok($r->{body} eq $data, "round $round: its bytes")
		or diag(length($r->{body}) . ' bytes');
	is($r->header_value('Content-Length'), length($data),
		"round $round: its length");
}

# a plan that the server sends in several parts

my $x = send_xorb($t, random_bytes(2, 600000), scheme => 'none',
	sizes => [ 1000 ]);
my $file = register_file($t, [ map { [ $x, 2 * ($_ % 250),
	2 * ($_ % 250) + 1 ] } 1 .. 3000 ]);
my $plan = $t->get("/api/v1/reconstructions/$file->{hash}")->{body};

for my $round (1 .. 3) {
	$r = $t->get("/added/v1/reconstructions/$file->{hash}", {},
		timeout => 60);

	is($r->{status}, 200, "round $round: a plan in pieces");
	is(length($r->{body}), length($plan), "round $round: its length");
	is(substr($r->{body}, 0, 200), substr($plan, 0, 200),
		"round $round: its beginning");
	ok(eval { $r->json() }, "round $round: JSON");
}

# clients that disconnect while the subrequests run

for my $uri ("/added/v1/files/$hash",
	"/added/v1/reconstructions/$file->{hash}")
{
	for my $wait (0.01, 0.5, 1) {
		my $c = $t->http_start('GET', $uri);

		select(undef, undef, undef, $wait);
		$c->abort();
	}
}

is($t->get('/api/health')->{status}, 200, 'disconnected clients');

$t->done();
