package Test::Xet::Soak;

# Copyright (C) the ngx_http_xet_module authors

# Runs two nodes that share one store and one database, and sends them
# concurrent requests in an order that the seed determines.  See
# t/soak/soak.pl.
#
# A request is
#
#     { text, subject, node, method, uri, headers, body,
#       add, del  files that it registers or removes
#       done      sub { response, unknown }; unknown: it may have taken effect
#       chunked   1: chunked coding
#       abort     number of bytes of the body or response before an abort
#       del_all   1: removes all files of the subject's repo
#       gc        1, and no other member: a collection during other requests
#       slow      read rate, in bytes a second
#       line      requests to pipeline on one connection }
#
# and a phase is a list of requests.  A result that no client should see is a
# violation: it dies with { class, text, about }.

use warnings;
use strict;

use parent qw/ Test::Xet::Soak::Ops Test::Xet::Soak::Checks
	Test::Xet::Soak::Collect /;

use POSIX ();
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Client ();
use Test::Xet::HTTP;
use Test::Xet::Process qw/ own patience reap slurp /;
use Test::Xet::Soak::Collect;
use Test::Xet::Soak::Model;
use Test::Xet::Soak::Random;

# Options:
#
#     mode        repo, token or store; see Test::Xet::Soak::Model
#     seed        seed of all random numbers
#     subjects    names of the subjects that have a token
#     part_steps  number of steps after which other files and xorbs are used
#     without     { operation or fault to leave out => 1 }
#     break       name of a safeguard to remove; see break()
#     verbose     1: prints all responses

sub new {
	my ($class, %o) = @_;

	my $self = bless { %o, log => [], step => 0, answers => {},
		again => [] }, $class;

	my @jobs = $self->draw_jobs();

	push @{ $self->{subjects} = [ @{ $self->{subjects} } ] }, 's'
		if $self->{whole};
	my %common = (workers => 2, log => 'notice', timeout => 7 * 86400,
		http => join("\n    ", Test::Xet::Token::token_directive(),
			'log_not_found off;', Test::Xet::Soak::Collect::audit(),
			$o{seed} % 3 || $o{without}{filters} ? () : filters()),
		locations => locations($o{mode},
			$self->{whole}));

	my $t = Test::Xet->new(%common, directives => $jobs[0],
		pg_conf => 'max_connections = 120');
	$t->token_key();
	$t->write_file('www/include.html',
		'[<!--#include virtual="$http_x_include" -->]');
	$t->write_file('www/plain.html', 'plain');
	$t->run();

	my $other = Test::Xet->new(%common, directives => $jobs[1],
		beside => $t);
	$other->token_key();
	$other->write_file("www/$_", $t->read_file("www/$_"))
		for qw/ include.html plain.html /;
	$other->run();

	break($t, $o{break}) if $o{break};

	$self->{nodes} = [ $t, $other ];
	$self->{t} = $t;
	$self->{model} = Test::Xet::Soak::Model->new(mode => $o{mode},
		$self->{whole} ? (whole => 's') : ());
	$self->{watcher} = watch($t->dir() . '/stood-still');

	return $self;
}

# Removes one of the database's safeguards.  The run must then report a
# violation.

sub break {
	my ($t, $what) = @_;

	my %breaks = (
		stay => [ 'shard_stay', qr/BEGIN.*END;/s, 'BEGIN END;' ],
		look => [ 'gc_files', qr/AND NOT f\.held\s[^;]*/, '' ],
		lock => [ 'gc_xorbs', qr/BY x\.id\s+FOR UPDATE SKIP LOCKED/,
			'BY x.id' ],
		needed => [ 'gc_xorbs', qr/WHERE NOT EXISTS[^)]*\)/, '' ],
		copies => [ 'gc_copies', qr/WHERE NOT EXISTS[^)]*\)/, '' ],
		delete => [ 'file_delete', qr/hash = NULL, /, '' ],
		notes => [ 'file_xorbs_gone', qr/BEGIN.*END;/s,
			'BEGIN RETURN NULL; END;' ]
	);

	my ($name, $from, $to) = @{ $breaks{$what} || die "BREAK is one of "
		. join(', ', sort keys %breaks) . "\n" };
	my $text = join("\n", $t->sql('SELECT pg_get_functiondef(oid) FROM'
		. " pg_proc WHERE proname = '$name'"));

	$text =~ s/$from/$to/ or die "$name has no $from\n";
	$t->sql($text);
}

# Returns directives of filters that an operator may have enabled for other
# pages.

sub filters {
	return ('gzip on;', 'gzip_types *;', 'gzip_min_length 1;',
		"sub_filter 'nothing has this' '';", 'sub_filter_types *;');
}

sub locations {
	my ($mode, $whole) = @_;

	my $api = Test::Xet::Token::repo_api();

	$api =~ s/xet_access repo/xet_access store/ if $mode ne 'repo';
	$api =~ s/xet_auth token;/xet_auth off;/ if $mode eq 'store';

	# the same API in another location, for the subject "the whole"

	my $store = $whole ? $api : '';

	$store =~ s!xet_access \w+;!xet_access store; xet_api_base /whole;!;
	$store =~ s!/api/!/whole/!;
	$store =~ s!location /xorbs.*!!s;

	return join("\n        ", $api, $store,
		Test::Xet::Token::token_location(), <<'EOF');
location /ssi/ {
            ssi on;
            root %%DIR%%;
            rewrite ^ /www/include.html break;
        }

        location /auth/ {
            auth_request /sub;
            root %%DIR%%;
            rewrite ^ /www/plain.html break;
        }

        location /mirror/ {
            mirror /sub;
            root %%DIR%%;
            rewrite ^ /www/plain.html break;
        }

        location = /metrics {
            xet_metrics;
        }

        location = /sub {
            internal;
            rewrite ^ $http_x_include last;
        }
EOF
}

# Makes the last checks: sends all damaged data again, reads all files, and
# stops nginx, which must exit cleanly.

sub last_step {
	my ($self) = @_;

	my $rng = Test::Xet::Soak::Random->new($self->{seed}, 'last');

	$self->{files} = {};
	$self->op_heal($rng);
	$self->check_file($rng, $_) for map { @{ $_->{files} } }
		values %{ $self->{worlds} };

	$self->last_collection($rng);
	$self->check_metrics($_) for 0, 1;

	for my $node (reverse @{ $self->{nodes} }) {
		$node->stop() or $self->violation('log',
			"nginx ended with $node->{nginx}{exits}[-1]");
	}

	$self->check_audit($_) for @{ $self->{nodes} };

	my ($line) = $self->complaints();
	$self->violation('log', $line) if defined $line;
}

sub summary {
	my ($self) = @_;

	return join(', ', map { "$self->{answers}{$_} $_" }
		sort keys %{ $self->{answers} });
}

# Stops everything without the checks that Test::Xet makes for a single test.

sub finish {
	my ($self) = @_;

	kill('KILL', $self->{watcher});
	reap($self->{watcher}, 5);

	for my $node (reverse @{ $self->{nodes} }) {
		$node->{checked} = 1;
		$node->{nginx}->kill();
		$node->{pg}->kill() if $node->{pg};
		$node->remove();
	}
}

# --------------------------------------------------------------------------
# output

sub note {
	my ($self, $text) = @_;

	my $line = sprintf('%6d  %s', $self->{step}, $text);

	push @{ $self->{log} }, $line;
	splice(@{ $self->{log} }, 0, 20000) if @{ $self->{log} } > 40000;
	print "$line\n" if $self->{verbose};
}

sub violation {
	my ($self, $class, $text, @about) = @_;

	my %steps = map { /^ *(\d+)/ ? ($1 => 1) : () }
		$self->history(@about);

	die { class => $class, text => $text, about => \@about,
		step => $self->{step}, steps => [ keys %steps ] };
}

# Returns the last lines of the servers' logs, without the levels notice and
# below.

sub said {
	my ($self) = @_;

	return map {
		my @all = split(/\n/, $_->log());

		push @all, lines("$_->{dir}/nginx.out");

		my @lines = grep { /\[(?:[wace][a-z]+)\]/ } @all;

		splice(@lines, 0, -20) if @lines > 20;
		(@lines, report(@all));
	} @{ $self->{nodes} };
}

# Returns the first sanitizer report in the lines.

sub report {
	my ($first) = grep { $_[$_] =~ /Sanitizer|==\d+==/ } 0 .. $#_;

	return () unless defined $first;

	my $last = $first + 50;

	return @_[$first .. ($last < $#_ ? $last : $#_)];
}

sub lines {
	open(my $in, '<:raw', $_[0]) or return ();

	chomp(my @lines = <$in>);

	return @lines;
}

# Returns the lines of our own log about files and xorbs.

sub history {
	my ($self, @about) = @_;

	my %names;

	for my $of (grep { ref } @about) {
		$names{$_->{name}} = 1 for $of, map { $_->[0] }
			@{ $of->{terms} || [] };
		$names{$of->{root}{name}} = 1 if $of->{root};
	}

	my $any = join('|', map { quotemeta } sort keys %names);
	my @lines = grep { $any ne '' && /\b(?:$any)\b/ || !/[xf]\d+\.\d/ }
		grep { !/in a line/ } @{ $self->{log} };

	return @lines > 60 ? @lines[-60 .. -1] : @lines;
}

# --------------------------------------------------------------------------
# requests

sub headers {
	my ($self, $req) = @_;

	my %headers = %{ $req->{headers} || {} };
	my $subject = $req->{subject};

	if ($self->{mode} ne 'store' && $subject ne 'nobody') {
		my $scope = $req->{scope} // 'write';

		%headers = (%headers, %{ $self->{t}->auth($scope,
			"$subject/$subject") });
	}

	return \%headers;
}

# Returns the URI of a request; the subject "the whole" uses another location.

sub uri_of {
	my ($self, $req) = @_;

	return $self->{model}->is_whole($req->{subject})
		? $req->{uri} =~ s!^/api/!/whole/!r : $req->{uri};
}

sub node { return $_[0]->{nodes}[$_[1] // 0] }

sub dial {
	my ($self, $req) = @_;

	return $self->node($req->{node})->connect(timeout => 30,
		$req->{slow} ? (rcvbuf => 4096) : ());
}

sub head_of {
	my ($self, $req) = @_;

	my $headers = $self->headers($req);
	my $body = $req->{body};

	# a client that reads only a part must not wait for more data than
	# exists

	$headers->{Connection} = 'close' if defined $req->{abort};

	$headers->{$req->{chunked} ? 'Transfer-Encoding' : 'Content-Length'}
		= $req->{chunked} ? 'chunked' : length($body) if defined $body;

	return join("\r\n", "$req->{method} " . $self->uri_of($req)
		. ' HTTP/1.1',
		'Host: localhost', map({ "$_: $headers->{$_}" }
			sort keys %$headers), '', '');
}

# Returns the bytes of a request, in pieces.  The last piece ends the request.

sub pieces {
	my ($self, $rng, $req) = @_;

	return map({ $self->head_of($_) } @{ $req->{line} }) if $req->{line};

	my $head = $self->head_of($req);
	my $body = $req->{body} // return $head;

	my @cuts = sort { $a <=> $b } length($body) ? (length($body) - 1) : (),
		map { $rng->int(length($body) + 1) } 1 .. $rng->int(3);
	my @pieces;
	my $at = 0;

	for (@cuts, length($body)) {
		push @pieces, substr($body, $at, $_ - $at) if $_ > $at;
		$at = $_;
	}

	@pieces = map { sprintf("%x\r\n%s\r\n", length($_), $_) } @pieces
		if $req->{chunked};
	push @pieces, "0\r\n\r\n" if $req->{chunked};

	return ($head, @pieces);
}

# Runs requests concurrently.  Sends all but the last piece of each request in
# turns, then all last pieces.
#
#     fault  sub { } to run in the middle; responses may be lost then

sub phase {
	my ($self, $rng, $reqs, %o) = @_;

	return unless @$reqs;

	my @collectors = grep { $_->{gc} } @$reqs;
	$reqs = [ grep { !$_->{gc} } @$reqs ];

	if ($self->{collection_waits}) {
		$self->wait_collection();
		$self->{model}->collected();
	}

	$self->{model}->tick();
	$self->{running} = $reqs;
	$self->{collecting} = $self->{collects} || @collectors
		|| $self->{collection_waits};
	$self->note($_->{text}) for @collectors, @$reqs;
	$self->start_collector($_) for grep { !$_->{late} } @collectors;

	for (grep { $_->{before} } @$reqs) {
		$_->{before}->($_);
	}

	my @open = map { { req => $_, c => $self->dial($_),
		pieces => [ $self->pieces($rng, $_) ] } } @$reqs;

	my @sending = grep { @{ $_->{pieces} } > 1 } @open;
	my $fault_at = $o{fault} ? $rng->int(4) : -1;

	for (my $n = 0; @sending; $n++) {
		my $one = $rng->pick(@sending);

		$self->fault($o{fault}, \@open) if $n == $fault_at;
		$self->piece($one);

		@sending = grep { @{ $_->{pieces} } > 1
			&& !$_->{aborted} } @open;
	}

	$self->start_collector($_) for grep { $_->{late} } @collectors;
	$self->piece($_) for grep { !$_->{aborted} } @open;

	$self->fault($o{fault}, \@open)
		if $o{fault} && @open && !$open[0]{req}{fault};

	$self->answer($_) for sort { ($a->{req}{slow} // 0)
		<=> ($b->{req}{slow} // 0) } grep { !$_->{aborted} } @open;

	$_->{c}->close() for grep { !$_->{aborted} } @open;
	$self->end_collector($_, $o{fault}) for @collectors;
	$self->{collecting} = $self->{collects};

	if ($o{fault}) {
		$self->settle();
		delete $_->{fault} for map { $_, @{ $_->{line} || [] } } @$reqs;
	}

	# each object refers to itself by its final callback and would never be
	# freed

	delete @$_{qw/ before done /}
		for map { $_, @{ $_->{line} || [] } } @$reqs;
}

sub piece {
	my ($self, $one) = @_;

	my $req = $one->{req};
	my $piece = shift @{ $one->{pieces} };

	$one->{sent} += length($piece);
	$one->{c}->send($piece);

	if (defined $req->{abort} && defined $req->{body}
		&& $one->{sent} > $req->{abort})
	{
		$one->{c}->abort();
		$one->{aborted} = 1;
		$req->{done}->({ status => 0 }, 1);
	}
}

sub fault {
	my ($self, $fault, $open) = @_;

	for (map { $_->{req} } @$open) {
		$_->{fault} = 1;
		$_->{fault} = 1 for @{ $_->{line} || [] };
	}

	$fault->();
}

sub answer {
	my ($self, $one) = @_;

	my ($c, $req) = @$one{qw/ c req /};

	if (defined $req->{abort}) {
		$c->read_some($req->{abort}, 1);
		$c->abort();
		$one->{aborted} = 1;
		return $req->{done}->({ status => 0 }, 1);
	}

	my @reqs = @{ $req->{line} || [ $req ] };

	for (@reqs) {
		my $r = $c->response($_->{method}, timeout => 60,
			$req->{slow} ? (rate => $req->{slow}) : ());

		$self->judge($_, $r);

		# nothing can follow an aborted request

		return if $r->{error} || !$r->{status};
	}

	# the next request on the connection gets its own response

	my $fault = $reqs[-1]{fault};

	if (!$reqs[-1]{closes}) {
		$c->start('GET', '/no-such-page', { Connection => 'close' });
		my $r = $c->response('GET', timeout => 60);

		$self->violation('answers', "after $req->{text}: $r->{status} "
			. ($r->{error} // '') . substr($r->{body} // '', 0,
				200), $req->{text})
			unless $fault || $r->{status} == 404 && !$r->{error};
	}

	$self->violation('answers', "$req->{text}: more than was asked for: "
		. substr($c->{buffer}, 0, 200), $req->{text})
		unless $fault || $c->closed(10);
}

sub judge {
	my ($self, $req, $r) = @_;

	$self->{answers}{"$req->{method} $r->{status}"}++;
	$req->{closes} = ($r->header_value('Connection') // '') eq 'close';

	my $lost = $r->{error} || !$r->{status};

	$req->{fault} = 1 if !$req->{fault}
		&& ($lost || ($r->{body} // '') =~ /"database_unavailable"/)
		&& $self->stood_still();

	my $unknown = $req->{fault} && ($lost || $r->{status} >= 500);

	$self->note(sprintf('      %s: %s%s%s', $req->{text}, $r->{status},
		$lost ? ' ' . ($r->{error} // 'no answer') : '',
		$r->{status} >= 400 && !ref $r->{body}
			? ' ' . substr($r->{body} // '', 0, 120) : ''))
		if $self->{verbose} || $r->{status} >= 500 || $lost;

	$self->{deletions}{$self->node($req->{node})}++
		if $req->{method} eq 'DELETE' && $r->{status} == 204
			&& !$req->{fault};

	$self->violation('answers', "$req->{text}: "
		. ($r->{error} // 'no answer'), $req->{text})
		if $lost && !$unknown && !$req->{may_fail};

	$req->{done}->($r, $unknown);
}

# Returns whether a concurrent request adds or deletes the same file for the
# same tenant, or for any tenant that the request affects.

sub races {
	my ($self, $req, $file, $what, $meets) = @_;

	$meets ||= $self->{model}->is_whole($req->{subject});

	my $model = $self->{model};

	return scalar grep { my $other = $_; $other != $req
		&& ($meets ? $model->meet($other->{subject}, $req->{subject})
			: $model->tenant($other->{subject})
			eq $model->tenant($req->{subject}))
		&& ($what eq 'del' && $other->{del_all}
			|| grep({ $_->{hash} eq $file->{hash} }
			@{ $other->{$what} || [] })) }
		@{ $self->{running} };
}

# --------------------------------------------------------------------------
# faults

sub settle {
	my ($self) = @_;

	for my $node (@{ $self->{nodes} }) {
		my ($good, @cut) = (0);

		wait_for(60, sub {
			my $r = eval { $node->get('/api/v1/health') };

			$good = $r && $r->{status} == 200 ? $good + 1 : 0;
			@cut = cut_off($node);

			return $good >= 6 && !@cut;
		}) or $self->violation('health', 'not well after a fault: '
			. "$good good answers, without PostgreSQL: @cut");
	}
}

# Returns the workers that have not reconnected since PostgreSQL refused them a
# session.  Health checks do not show this, as other workers may serve them.  A
# new worker may have the process id of an earlier one.

sub cut_off {
	my ($node) = @_;

	my $line = qr/(\d+)#\d+: xet: ((?:re)?connect(?:ing|ed)) to PostgreSQL/;
	my %failed;

	for (split(/\n/, $node->log())) {
		delete $failed{$1} if /start worker process (\d+)/;

		my ($pid, $what) = /$line/ or next;

		$failed{$pid} += $what eq 'connecting' ? 1 : -1;
	}

	return grep { $failed{$_} } $node->worker_pids();
}

# Starts a process that only sleeps.  It detects that the virtual machine was
# paused or swapped, which to the server looks like a PostgreSQL that does not
# respond.  A merely busy machine does not delay the process that long.

sub watch {
	my ($file) = @_;

	my $parent = $$;
	my $pid = fork();
	die "fork() failed: $!\n" unless defined $pid;

	if ($pid == 0) {
		while (getppid() == $parent) {
			my $begun = time();

			sleep(0.25);

			if (time() - $begun > 3) {
				open(my $out, '>', $file);
			}
		}

		POSIX::_exit(0);
	}

	own($pid);

	return $pid;
}

# Returns whether the virtual machine was paused in the last minute.  Waits a
# second first, so that the process of watch() can report a recent pause.

sub stood_still {
	my ($self) = @_;

	sleep(1);

	my $at = (stat($self->{t}->dir() . '/stood-still'))[9] // return 0;

	return 0 if time() - $at > 60;

	$self->note('the machine stood still');

	return 1;
}

# Returns the log lines since the last call that no run should have.

sub complaints {
	my ($self) = @_;

	my @lines;

	for my $node (@{ $self->{nodes} }) {
		for my $file (map { "$node->{dir}/$_" } qw/ error.log
			nginx.out /)
		{
			open(my $in, '<:raw', $file) or next;
			seek($in, $self->{read}{$file} // 0, 0);

			while (my $line = <$in>) {
				push @lines, $line if bad_line($line);
			}

			$self->{read}{$file} = tell($in);
		}
	}

	my $touched = join('|', sort keys %{ $self->{touched} || {} });

	@lines = grep { !/(?:$touched)/ } @lines if $touched;

	return grep { my $line = $_;
		!grep { $line =~ $_ } @{ $self->{allow} || [] } } @lines;
}

# Returns whether a line is a fault.  UBSan reports about nginx's own sources do
# not count.

sub bad_line {
	my ($line) = @_;

	my $root = Test::Xet::Process::root();

	return $line =~ /\[(?:alert|emerg)\]/ || $line =~ /Sanitizer/
		|| $line =~ /^\Q$root\E.*runtime error:/;
}

1;
