#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
#
# A process of an application that the broker calls: serving.pl SOCKET
#
# The commands are those of serving.py, at whose top they are described. Needs only modules that come with Perl.
use v5.30;
use warnings;
use IO::Socket::UNIX;
use JSON::PP;
use List::Util qw(any first);
use POSIX ();
use Time::HiRes qw(time);

package Refused { sub new { my ($class, $error) = @_; return bless {error => $error}, $class } }
package Lost { sub new { my ($class, $why) = @_; return bless {why => $why}, $class } }

my @delegate = qw(
    shouldSaveApplicationState shouldRestoreApplicationState willEncodeRestorableState
    viewControllerWithRestorationIdentifierPath didDecodeRestorableState
);
my @served = qw(
    encodeRestorableStateWithCoder decodeRestorableStateWithCoder objectWithRestorationIdentifierPath
    modelIdentifierForElementAtIndexPath indexPathForElementWithModelIdentifier
    applicationFinishedRestoringState applicationStateSaved headReplaced pathChanged registrationReplaced
);
my $patience = 60;
my $json = JSON::PP->new->utf8->canonical->allow_nonref->allow_bignum;
my ($true, $false, $null) = (JSON::PP::true, JSON::PP::false, undef);

# Lines that come through a handle, without reading more than there is.
sub lines { return {handle => shift, buffer => ''} }

sub next_line {
    my $lines = shift;
    my $end = index $lines->{buffer}, "\n";
    return undef if $end < 0;
    return substr $lines->{buffer}, 0, $end + 1, '';
}

sub read_more {
    my $lines = shift;
    my $count = sysread $lines->{handle}, $lines->{buffer}, 1 << 18, length $lines->{buffer};
    return $count;
}

# The connection: JSON-RPC both ways.
my $path = $ARGV[0];
my ($broker, $input, $last_id, %answers);
$SIG{PIPE} = 'IGNORE';

sub disconnect {
    close $broker if $broker;
    $broker = undef;
}

sub connect_to_broker {
    $broker = IO::Socket::UNIX->new(Peer => $path) or die Lost->new("$path: $!");
    $input = lines($broker);
    %answers = ();
}

sub write_line {
    my $text = shift() . "\n";
    while (length $text) {
        my $count = $broker && syswrite $broker, $text;
        die Lost->new('the broker takes nothing any more') if !$count;
        substr $text, 0, $count, '';
    }
}

sub send_message { my %members = @_; write_line($json->encode({jsonrpc => '2.0', %members})) }

sub request {
    my ($method, $params) = @_;
    send_message(id => ++$last_id, method => $method, params => $params // {});
    return $last_id;
}

# Reads the input; false if there is no complete message.
sub take {
    my $line = next_line($input) // return 0;
    my $message = $json->decode($line);
    if (exists $message->{method}) { serve($message) } else { $answers{$message->{id}} = $message }
    return 1;
}

sub wait_for_more {
    die Lost->new('there is no connection') if !$broker;
    return if take();
    die Lost->new('the broker has closed the connection') if !read_more($input);
}

sub answer_to {
    my $number = shift;
    wait_for_more() while !$answers{$number};
    my $answer = delete $answers{$number};
    die Refused->new($answer->{error}) if $answer->{error};
    return $answer->{result};
}

sub call { return answer_to(request(@_)) }

# The objects of the process, and its answers to the broker.
my (%objects, %names, @names_in_order, @classes, %sources, %behaviours, @held, @log, %counts, %restored, @finished);
my ($options, $application_state, $decoded_application_state, $answer_bytes_max) = ({}, {}, undef, 1 << 21);

sub note { push @log, [@_]; $counts{$_[0]}++ }
sub name_of { return $names{$_[0]} // "?$_[0]" }
sub crash { POSIX::_exit(1) }

my %notes = (
    shouldSaveApplicationState => sub { note('shouldSave') },
    shouldRestoreApplicationState => sub { note('shouldRestore') },
    willEncodeRestorableState => sub { note('willEncode') },
    didDecodeRestorableState => sub { note('didDecode'); $decoded_application_state = $_[0]{state} },
    encodeRestorableStateWithCoder => sub { note('encode', name_of($_->{object})) for @{$_[0]{objects}} },
    decodeRestorableStateWithCoder => sub {
        for (@{$_[0]{objects}}) {
            # Answers are taken in the order of the calls: that of an earlier one may still be awaited.
            $names{$_->{object}} //= join '/', @{$_->{path}};
            note('decode', name_of($_->{object}));
        }
    },
    objectWithRestorationIdentifierPath => sub { note('create', join '/', @{$_[0]{identifierPath}}) },
    viewControllerWithRestorationIdentifierPath => sub { note('create', join '/', @{$_[0]{identifierPath}}) },
    modelIdentifierForElementAtIndexPath => sub { note('model', (source($_[0]{view}) // {name => '?'})->{name}) },
    indexPathForElementWithModelIdentifier => sub { note('index', (source($_[0]{view}) // {name => '?'})->{name}) },
    applicationFinishedRestoringState => sub {
        for my $name (map { name_of($_) } @{$_[0]{objects}}) { push @finished, $name; note('finished', $name) }
    },
    applicationStateSaved => sub { note('saved', $_[0]{generation}) },
    headReplaced => sub { note('headReplaced', $_[0]{generation}) },
    pathChanged => sub { note('pathChanged', name_of($_[0]{object})) },
    registrationReplaced => sub {
        my $name = name_of($_[0]{object});
        note('replaced', $name);
        delete $objects{$name};
    },
);

my %serve = (
    shouldSaveApplicationState => sub { $true },
    shouldRestoreApplicationState => sub { $true },
    willEncodeRestorableState => sub { {state => $application_state} },
    didDecodeRestorableState => sub { return {} },
    viewControllerWithRestorationIdentifierPath => sub { $null },
    encodeRestorableStateWithCoder => \&encode,
    decodeRestorableStateWithCoder => sub {
        for my $entry (@{$_[0]{objects}}) {
            my $name = name_of($entry->{object});
            if ($entry->{deferred}) { fetch($name, $entry->{object}) } else { decoded($name, $entry) }
        }
        return {};
    },
    objectWithRestorationIdentifierPath => \&create,
    modelIdentifierForElementAtIndexPath => sub {
        my $params = shift;
        my $source = source($params->{view}) or return $null;
        my $found = $source->{items};
        for my $index (@{$params->{indexPath}}) {
            return $null if ref $found ne 'ARRAY';
            $found = $found->[$index];
        }
        return ref $found ? $null : $found;
    },
    indexPathForElementWithModelIdentifier => sub {
        my $params = shift;
        my $source = source($params->{view}) or return $null;
        return find($source->{items}, $params->{identifier});
    },
);

sub serve {
    my $message = shift;
    my $method = $message->{method};
    my $params = $message->{params} // {};
    $notes{$method}->($params) if $notes{$method};
    return if !exists $message->{id};
    my $behaviour = $behaviours{$method};
    if (!defined $behaviour) { respond($message) }
    elsif (ref $behaviour) {
        if (exists $behaviour->{raw}) { write_line(encode_text($behaviour->{raw})) }
        else { send_message(id => $message->{id}, %$behaviour) }
    }
    elsif ($behaviour eq 'crash') { crash() }
    elsif ($behaviour eq 'hold') { push @held, $message }
}

sub encode_text { my $text = shift; utf8::encode($text); return $text }

sub respond {
    my $message = shift;
    my $serve = $serve{$message->{method}};
    if ($serve) { send_message(id => $message->{id}, result => $serve->($message->{params} // {})) }
    else {
        my $error = {code => -32601, message => "there is no method $message->{method}"};
        send_message(id => $message->{id}, error => $error);
    }
}

sub state_of {
    my $thing = shift;
    return (state => $thing->{state}, @{$thing->{elements}} ? (elements => $thing->{elements}) : ());
}

sub encode {
    my ($params) = @_;
    my ($size, @states) = (0);
    for my $handle (map { $_->{object} } @{$params->{objects}}) {
        my $thing = $objects{$names{$handle} // ''};
        if (!$thing) {
            push @states, {object => $handle, error => {message => 'there is no such object'}};
            next;
        }
        my $how = $thing->{encode} // '';
        next if $how eq 'missing';
        if ($how eq 'fail') {
            push @states, {object => $handle, error => {message => 'it cannot be encoded'}};
            next;
        }
        my %state = state_of($thing);
        $size += 64 + length $json->encode(\%state);
        my $is_later = $how eq 'later' || ($size > $answer_bytes_max && @states);
        push @states, {object => $handle, $is_later ? (later => $true) : %state};
    }
    return {states => \@states};
}

sub fetch {
    my ($name, $handle) = @_;
    my $reply = call('decodeRestorableState', {object => $handle});
    decoded($name, $reply) if $reply->{status} eq 'available';
    return $reply->{status};
}

sub decoded {
    my ($name, $entry) = @_;
    my $thing = $objects{$name};
    crash() if $thing && ($thing->{decode} // '') eq 'crash';
    my @elements = @{$entry->{elements} // []};
    my $times = 1 + ($restored{$name} ? $restored{$name}{times} : 0);
    $restored{$name} = {
        state => $entry->{state}, coder => $entry->{coder}, elements => [@elements], times => $times,
    };
    return if !$thing;
    $thing->{state} = $entry->{state};
    $thing->{elements} = [map { my %element = %$_; delete $element{resolved}; \%element } @elements];
}

# Makes the object as it was, unless it exists.
sub create {
    my ($params) = @_;
    my @path = @{$params->{identifierPath}};
    my $name = join '/', @path;
    if (!$objects{$name}) {
        my ($identifier, $position) = split /#/, $path[-1];
        my $classes = $params->{objectClass} // [];
        register({
            identifier => $identifier, parent => @path > 1 ? [@path[0 .. $#path - 1]] : undef, kind => $params->{kind},
            classes => ref $classes ? $classes : [$classes], restorationClass => $params->{restorationClass},
            position => defined $position ? 0 + $position : undef,
        });
    }
    return {object => $objects{$name}{handle}};
}

# The data source of a view, which the broker may name by handle or path.
sub source {
    my $view = shift;
    my $name = ref $view ? join('/', @$view) : $names{$view} // '';
    return $sources{$name} // (keys %sources == 1 ? (values %sources)[0] : undef);
}

sub find {
    my ($items, $identifier) = @_;
    for my $index (keys @$items) {
        if (ref $items->[$index]) {
            my $found = find($items->[$index], $identifier);
            return [$index, @$found] if $found;
        }
        elsif ($items->[$index] eq $identifier) { return [$index] }
    }
    return $null;
}

# The commands.
sub register {
    my (@waiting, @registered);
    my $take = sub {
        for (splice @waiting) {
            my ($number, $wanted, $registration) = @$_;
            my $reply = answer_to($number);
            my $name = $wanted->{name} // join '/', @{$reply->{path}};
            push @names_in_order, $name if !$objects{$name};
            $objects{$name} = {
                handle => $reply->{object}, registration => $registration, state => $wanted->{state} // {},
                elements => $wanted->{elements} // [], encode => $wanted->{encode}, decode => $wanted->{decode},
            };
            $names{$reply->{object}} = $name;
            push @registered, {
                name => $name, path => $reply->{path}, included => $reply->{included},
                state => $reply->{restoration}{state},
            };
        }
    };
    for my $wanted (@_) {
        my $parent = $wanted->{parent};
        if (defined $parent && !ref $parent) {
            $take->() if !$objects{$parent};
            $parent = $objects{$parent}{handle};
        }
        my %members = (
            restorationParent => $parent, kind => $wanted->{kind},
            objectClass => @{$wanted->{classes} // []} ? $wanted->{classes} : undef,
            restorationClass => $wanted->{restorationClass}, position => $wanted->{position},
            awaitParentMilliseconds => $wanted->{await}, takeOver => $wanted->{takeOver},
            confidential => $wanted->{confidential}, keep => $wanted->{keep},
        );
        defined $members{$_} or delete $members{$_} for keys %members;
        $members{restorationIdentifier} = $wanted->{identifier};
        push @waiting, [request('registerObjectForStateRestoration', \%members), $wanted, \%members];
        $take->() if @waiting == 64;
    }
    $take->();
    return @registered;
}

sub initialize {
    my $reply = call('initialize', $options);
    $options->{session} = $reply->{session};
    $answer_bytes_max = $reply->{limits}{frameBytesMax} / 2;
    my $restoration = $reply->{restoration};
    return {session => $reply->{session}, map { $_ => $restoration->{$_} } qw(reason state generation)};
}

sub long_call {
    my ($method, $command, @members) = @_;
    my $number = request($method, {map { exists $command->{$_} ? ($_ => $command->{$_}) : () } @members});
    return exists $command->{wait} && !$command->{wait} ? {call => $number} : answer_to($number);
}

# Connects until there is a broker, resumes the session, and repeats what the broker has forgotten.
sub resume {
    disconnect();
    @held = ();
    my $deadline = time + $patience;
    until (eval { connect_to_broker(); 1 }) {
        die $@ if time > $deadline;
        select undef, undef, undef, 0.005;
    }
    my $former = $options->{session};
    my $is_resumed = initialize()->{session} eq $former;
    register_again() if !$is_resumed;
    call('registerRestorationClass', {restorationClass => $_}) for @classes;
    call('registerDataSource', {view => $_->{view}}) for values %sources;
    return {resumed => $is_resumed ? $true : $false};
}

sub register_again {
    my %handles;
    for my $name (grep { $objects{$_} } @names_in_order) {
        my $thing = $objects{$name};
        my $parent = $thing->{registration}{restorationParent};
        $thing->{registration}{restorationParent} = $handles{$parent} // $parent if defined $parent && !ref $parent;
        my $reply = call('registerObjectForStateRestoration', $thing->{registration});
        $handles{$thing->{handle}} = $reply->{object};
        $thing->{handle} = $reply->{object};
        $names{$reply->{object}} = $name;
    }
}

my %commands = (
    open => sub {
        my $command = shift;
        my @members = qw(application process delegate bundleVersion aliases messageBytesMax);
        $options = {map { $_ => $command->{$_} } grep { exists $command->{$_} } @members};
        $options->{serves} = $command->{serves} // [@served, $command->{delegate} ? @delegate : ()];
        return initialize();
    },
    register => sub { {objects => [register(@{$_[0]{objects}})]} },
    set => sub {
        my $command = shift;
        my $thing = $objects{$command->{name}};
        exists $command->{$_} and $thing->{$_} = $command->{$_} for qw(state elements encode decode);
        return {};
    },
    application => sub { $application_state = $_[0]{state}; return {} },
    class => sub {
        push @classes, $_[0]{restorationClass};
        return call('registerRestorationClass', {restorationClass => $_[0]{restorationClass}});
    },
    dataSource => sub {
        my ($view, $items) = @{$_[0]}{qw(view items)};
        $view = [split m{/}, $view] if !ref $view;
        my $name = join '/', @$view;
        my $is_known = $sources{$name};
        $sources{$name} = {view => $view, items => $items, name => $name};
        return $is_known ? {} : call('registerDataSource', {view => $view});
    },
    push => sub {
        my @names = @{$_[0]{names} // [grep { $objects{$_} } @names_in_order]};
        my %results;
        while (my @portion = splice @names, 0, 64) {
            my %numbers = map {
                $_ => request('encodeRestorableState', {object => $objects{$_}{handle}, state_of($objects{$_})})
            } @portion;
            for my $name (@portion) {
                next if eval { $results{$name} = answer_to($numbers{$name}); 1 };
                die $@ if ref $@ ne 'Refused';
                $results{$name} = {error => $@->{error}};
            }
        }
        return {results => \%results};
    },
    decode => sub { {status => fetch($_[0]{name}, $objects{$_[0]{name}}{handle})} },
    invalidate => sub { call('invalidateRestorableState', {object => $objects{$_[0]{name}}{handle}}) },
    save => sub { long_call('saveApplicationState', $_[0], qw(reason deadlineMilliseconds)) },
    restore => sub { long_call('restoreApplicationState', $_[0], qw(deadlineMilliseconds)) },
    wait => sub { answer_to($_[0]{call}) },
    extend => sub { call('extendStateRestoration') },
    complete => sub { call('completeStateRestoration') },
    goodbye => sub { call('goodbye', {reason => $_[0]{reason}}) },
    behave => sub { $behaviours{$_[0]{method}} = $_[0]{as}; return {} },
    release => sub { my @released = splice @held; respond($_) for @released; return {released => 0 + @released} },
    log => sub { {log => [splice @log]} },
    await => sub {
        my ($what, $count) = @{$_[0]}{qw(what count)};
        wait_for_more() while ($counts{$what} // 0) < $count;
        return {count => $counts{$what}};
    },
    restored => sub {
        return {objects => \%restored, application => $decoded_application_state, finished => \@finished};
    },
    call => sub { call($_[0]{method}, $_[0]{params}) },
    notify => sub { send_message(method => $_[0]{method}, params => $_[0]{params} // {}); return {} },
    resume => \&resume,
);

sub obey {
    my $command = $json->decode(shift);
    my $answer = eval { $commands{$command->{do}}->($command) };
    if (my $error = $@) {
        die $error if !ref $error;
        disconnect() if ref $error eq 'Lost';
        $answer = ref $error eq 'Lost' ? {lost => $error->{why}} : {error => $error->{error}};
    }
    syswrite STDOUT, $json->encode($answer) . "\n" or exit 1;
}

# Serves the broker until there is input on standard input.
sub listen_to_broker {
    while (1) {
        eval { while ($broker && take()) {} 1 } or do { die $@ if !ref $@; disconnect() };
        my $ready = '';
        vec($ready, 0, 1) = 1;
        vec($ready, fileno $broker, 1) = 1 if $broker;
        select $ready, undef, undef, undef;
        return if vec $ready, 0, 1;
        disconnect() if !read_more($input);
    }
}

connect_to_broker();
my $commands = lines(\*STDIN);
while (1) {
    if (defined(my $line = next_line($commands))) { obey($line); next }
    listen_to_broker();
    read_more($commands) or last;
}
